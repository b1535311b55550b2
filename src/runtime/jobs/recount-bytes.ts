/**
 * Counts the stored bytes of tenants again, and corrects counters that differ: an attacker with write access to the
 * database could lift a storage quota by one number. Each process does so when it starts, and so after a restore, and
 * once a day. It remembers by itself when, because a time in the database could be altered as well.
 *
 * The count is exact while requests go on. Rows and counters are read in one snapshot, and each commit changes both by
 * the same number of bytes, so their difference stays the same until it is added to the counters.
 */
import { day, minute } from '../../base/clock.ts';
import { type ApplicationId, parseUuid, type TenantId } from '../../base/ids.ts';
import { alteredOutside, systemEntry } from '../../rules/log-entries.ts';
import type { Change } from '../../store/change.ts';
import { type CountedName, countedTables } from '../../store/migrations/stored-sizes.ts';
import { createFailures } from '../../store/per-tenant/failures.ts';
import {
  bytesOfRows,
  countedBytesOf,
  endOfPage,
  impossibleCounters,
} from '../../store/queries/stored-bytes.ts';
import { nextTenantWithLogs } from '../../store/queries/tenants.ts';
import { correctionSlot } from '../../store/storage-tables.ts';
import type { ScanSnapshot } from '../../store/store.ts';
import type { AnyRow } from '../../store/tables.ts';
import type { JobTools } from './batches.ts';
import { createPace, type Pace } from './pace.ts';
import type { Job } from './runner.ts';

/** Rows that one query adds up. */
const rowsPerPage = 5_000;

const tenantsPerPage = 100;

/** Counters that one commit corrects. */
const correctionsMax = 100;

/** Of a tenant whose counters another process corrects, or an attacker alters, at the same time. */
const attemptsMax = 5;

export interface RecountTools extends JobTools {
  /** Called once for a tenant whose counters were corrected. */
  readonly onCorrected?: ((tenant: TenantId) => void) | undefined;
  /** In place of {@link rowsPerPage}. */
  readonly rowsMax?: number;
}

export function recountBytes(tools: RecountTools): Job {
  const { store, clock } = tools;
  /** A run that failed is continued by the next one. */
  let after: TenantId | undefined;
  let dueAt = Number.NEGATIVE_INFINITY;

  async function run(stopping: AbortSignal): Promise<number> {
    if (clock.now() < dueAt) return 0;
    const began = clock.now();
    const failures = createFailures(store);
    let corrected = 0;
    for (;;) {
      const page = await store.select(nextTenantWithLogs('tenants', after, tenantsPerPage));
      for (const { tenant_id } of page) {
        await failures.attempt(async () => {
          corrected += await recountTenant(tools, tenant_id, stopping);
        });
        if (stopping.aborted) return corrected;
        after = tenant_id;
      }
      if (page.length < tenantsPerPage) break;
    }
    after = undefined;
    dueAt = began + day;
    failures.report();
    return corrected;
  }

  return { name: 'recount stored bytes', everyMs: 10 * minute, run };
}

/** @returns how many counters were corrected. */
async function recountTenant(
  tools: RecountTools,
  tenant: TenantId,
  stopping: AbortSignal,
): Promise<number> {
  const pace = createPace(stopping, tools.timer);
  let corrected = await removeImpossible(tools, tenant);
  for (let attempt = 0; attempt < attemptsMax && !stopping.aborted; attempt++) {
    const differences = await tools.store.snapshot((scan) =>
      differencesOf({ rowsMax: rowsPerPage, ...tools, scan, tenant, pace, stopping }),
    );
    if (stopping.aborted || differences === undefined || differences.length === 0) break;
    corrected += await correct(tools, tenant, differences);
  }
  if (corrected > 0) tools.onCorrected?.(tenant);
  return corrected;
}

/** They are not added up with the others, and the difference that remains is corrected as any other. */
async function removeImpossible(tools: RecountTools, tenant: TenantId): Promise<number> {
  let removed = 0;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const found = await tools.store.select(impossibleCounters(tenant, correctionsMax));
    if (found.length === 0) break;
    const isDone = await commit(tools, tenant, {
      applications: found.map(({ application_id }) => application_id),
      change: { remove: { stored_bytes: found } },
    });
    if (isDone) removed += found.length;
  }
  return removed;
}

interface Difference {
  readonly application_id: ApplicationId;
  /** By which the counters are too low. */
  readonly bytes: number;
  /** What the slot for corrections has; `undefined` if there is none. */
  readonly corrected: number | undefined;
}

interface Recount {
  /** All of its reads see the same state. */
  readonly scan: ScanSnapshot;
  readonly tenant: TenantId;
  readonly rowsMax: number;
  readonly pace: Pace;
  readonly stopping: AbortSignal;
}

async function differencesOf(recount: Recount): Promise<readonly Difference[]> {
  const { scan, tenant, stopping } = recount;
  const counters = await scan(countedBytesOf(tenant));
  const stored = new Map<ApplicationId, number>();
  for (const table of Object.keys(countedTables) as CountedName[]) {
    await addRows(recount, table, stored);
    if (stopping.aborted) return [];
  }
  const differences: Difference[] = [];
  for (const { application_id, bytes, corrected } of counters) {
    const difference = (stored.get(application_id) ?? 0) - Number(bytes);
    stored.delete(application_id);
    if (difference === 0) continue;
    const before = corrected === null ? undefined : Number(corrected);
    differences.push({ application_id, bytes: difference, corrected: before });
  }
  for (const [application_id, bytes] of stored) {
    if (bytes !== 0) differences.push({ application_id, bytes, corrected: undefined });
  }
  return differences;
}

async function addRows(
  { scan, tenant, rowsMax, pace, stopping }: Recount,
  table: CountedName,
  stored: Map<ApplicationId, number>,
): Promise<void> {
  let after: AnyRow | undefined;
  do {
    const [end] = await scan(endOfPage(table, { tenant, after, rowsMax }));
    for (const { application_id, bytes } of await scan(
      bytesOfRows(table, { tenant, after, end }),
    )) {
      if (application_id === null) continue;
      stored.set(application_id, (stored.get(application_id) ?? 0) + Number(bytes));
    }
    after = end;
    // Nothing was written, so it rests only for a share of the time that the page took.
    await pace.rest(0);
  } while (after !== undefined && !stopping.aborted);
}

/** With a conflict another process was faster. */
async function correct(
  tools: RecountTools,
  tenant: TenantId,
  differences: readonly Difference[],
): Promise<number> {
  const tenant_id = tenant;
  const slot = correctionSlot;
  let corrected = 0;
  for (let at = 0; at < differences.length; at += correctionsMax) {
    const page = differences.slice(at, at + correctionsMax);
    const insert = page.flatMap(({ application_id, bytes, corrected: before }) =>
      before === undefined ? [{ tenant_id, application_id, slot, bytes }] : [],
    );
    const amend = page.flatMap(({ application_id, bytes, corrected: before }) =>
      before === undefined
        ? []
        : [{ tenant_id, application_id, slot, bytes: before + bytes, was_bytes: before }],
    );
    const isDone = await commit(tools, tenant, {
      applications: page.map(({ application_id }) => application_id),
      change: { insert: { stored_bytes: insert }, amend: { stored_bytes: amend } },
    });
    if (isDone) corrected += page.length;
  }
  return corrected;
}

interface Correction {
  readonly applications: readonly ApplicationId[];
  readonly change: Omit<Change, 'entries'>;
}

async function commit(
  { store, clock, tenants }: RecountTools,
  tenant: TenantId,
  { applications, change }: Correction,
): Promise<boolean> {
  // A tenant's keyring is opened only where something has to be corrected. That of a deleted tenant is gone.
  if ((await tenants.find(tenant)) === undefined) return false;
  const [first, ...others] = [...new Set(applications)].map((application) => {
    const entry = systemEntry({
      tenant,
      at: clock.now(),
      entity: 'application',
      // An attacker may have written any other text.
      id: parseUuid(application) ?? '*',
      operation: 'recount',
    });
    return { ...entry, message: `${entry.message}: the counter was ${alteredOutside}` };
  });
  if (first === undefined) return false;
  const { conflict } = await store.commit({ ...change, entries: [first, ...others] });
  return conflict === undefined;
}
