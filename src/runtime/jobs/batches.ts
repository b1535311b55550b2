/** Processing what is due: tenant by tenant of those that have something due, in batches that commit one by one. */

import type { OwnNotes } from '../../audit/own-notes.ts';
import { type Clock, type Instant, instantAfter, minute } from '../../base/clock.ts';
import { integrityError, type VaultError } from '../../base/errors.ts';
import type { TenantId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { createQuarantine } from '../../rules/quarantine.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import type { Change } from '../../store/change.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import { createFailures, type TenantFailures } from '../../store/per-tenant/failures.ts';
import type { DueColumn } from '../../store/queries/due.ts';
import { duePages, orphans } from '../../store/queries/due-tenants.ts';
import { type DueRows, impossibleDue } from '../../store/queries/tenant-rows.ts';
import type { Store } from '../../store/store.ts';
import { impossible } from '../../store/unavailable.ts';
import { createPace, type Timer } from './pace.ts';

/**
 * Rows found at a time where no more of them is needed than their keys: to find the first of all that
 * are due may cost a database as much as to find hundreds.
 */
export const keysMax = 1_000;

/** Batches in a row that other servers may take away before this one leaves the rest to its next run. */
const conflictsMax = 20;

/**
 * What is gone for readers stays on the disk for as long: a server whose clock is ahead must not
 * remove what others still show.
 */
const clockSkewMs = 5 * minute;

export interface Batch {
  readonly change: Omit<Change, 'entries'>;
  /** Empty when nothing of the batch can be processed. */
  readonly entries: readonly LogEntry[];
  /** Rows processed. */
  readonly count: number;
  /** Rows that were not there any more when they were read, and are looked for again. */
  readonly absent?: number;
}

export interface BatchRun {
  /** With a quarantine of the run: one altered row must not keep the others from being processed. */
  readonly tenant: Tenant;
  readonly now: Instant;
}

/** Skipped are those that are damaged: they stay where they are. */
export interface Due extends DueRows {
  readonly tenant: Tenant;
}

export interface JobTools {
  readonly store: Store;
  readonly tenants: Tenants;
  readonly clock: Clock;
  readonly random: Random;
  readonly ownNotes?: OwnNotes;
  /** In place of {@link systemTimer}. */
  readonly timer?: Timer;
}

/** Due rows looked at to find the tenants they belong to. */
const dueRowsMax = 50_000;

export interface BatchWork<R> {
  /** The column that says when a row is due, which an index begins with. */
  readonly due: DueColumn;
  /** Rows found at a time; a commit takes some of them. */
  readonly rowsMax: number;
  readonly find: (due: Due) => Promise<readonly R[]>;
  readonly decide: (rows: readonly R[], run: BatchRun) => Promise<Batch>;
}

/** Batches of a tenant before it is the turn of the next one. */
export const batchesPerTurn = 100;

/** Then a run ends, however much becomes due meanwhile, so that it can report what it found. */
const roundsMax = 1_000;

/**
 * Gives the number of rows processed. Changes name the versions of the rows they have seen, so of
 * servers that take the same batch one succeeds, and the others look again at what is left.
 *
 * @throws VaultError `integrity` for a row that cannot be opened, once all others are processed.
 */
export async function workOff<R>(
  tools: JobTools,
  stopping: AbortSignal,
  work: BatchWork<R>,
): Promise<number> {
  const run: JobRun = { failures: createFailures(tools.store), unfinished: new Map(), count: 0 };
  for (let round = 0; round < roundsMax && !stopping.aborted; round++) {
    await takeTurns(tools, stopping, { ...work, run });
    if (run.unfinished.size === 0) break;
  }
  run.failures.report();
  return run.count;
}

interface JobRun {
  readonly failures: TenantFailures;
  /** With how many rows were passed over because they cannot be processed. */
  readonly unfinished: Map<TenantId, number>;
  count: number;
}

type RunWork<R> = BatchWork<R> & { readonly run: JobRun };

/** One turn for every tenant that has something due now. */
async function takeTurns<R>(
  tools: JobTools,
  stopping: AbortSignal,
  work: RunWork<R>,
): Promise<void> {
  const { store, tenants, clock } = tools;
  const { failures } = work.run;
  const seen = new Set<TenantId>();
  const until = instantAfter(clock.now(), -clockSkewMs);
  for await (const page of duePages(store, { ...work.due, until, rowsMax: dueRowsMax })) {
    if (page.hasOrphans) failures.add(orphans(work.due));
    for (const { id } of page.tenants) {
      if (stopping.aborted) return;
      if (seen.has(id)) continue;
      seen.add(id);
      await failures.attempt(async () => {
        const tenant = await tenants.find(id);
        if (tenant) await workOffTenant(tools, stopping, { ...work, tenant });
        else failures.add(await damageOf(tools, work.due, id));
      });
    }
  }
  for (const id of work.run.unfinished.keys()) if (!seen.has(id)) work.run.unfinished.delete(id);
}

/** For a tenant whose row was altered, no job can process the due rows; a deleted tenant has none. */
async function damageOf(
  { tenants, store }: JobTools,
  due: DueColumn,
  id: TenantId,
): Promise<VaultError | undefined> {
  if (!(await tenants.row(id))) {
    return (await store.get('tenants', { tenant_id: id })) ? undefined : orphans(due);
  }
  return integrityError(
    `the row or the keyring of tenant ${id} was altered outside the vault; what is due of it stays`,
    { altered: { entity: 'tenant', id } },
  );
}

/** Without the id, which may be derived from a value, and the operator's log holds none. */
function leftAsItIs(damage: VaultError, { id }: Tenant): VaultError {
  const { entity = 'row' } = damage.altered ?? {};
  return integrityError(
    `a ${entity} of tenant ${id} was altered outside the vault and is left as it is; ` +
      '"strongroom logs verify --state" names it',
    { cause: damage },
  );
}

/** One turn of a tenant. */
async function workOffTenant<R>(
  { store, clock, timer }: JobTools,
  stopping: AbortSignal,
  { tenant, run, due, rowsMax, find, decide }: RunWork<R> & { readonly tenant: Tenant },
): Promise<void> {
  const { failures, unfinished } = run;
  const pace = createPace(stopping, timer);
  const quarantine = createQuarantine((damage) => failures.add(leftAsItIs(damage, tenant)));
  let found: readonly R[] = [];
  let all = false;
  let skip = unfinished.get(tenant.id) ?? 0;
  let conflicts = 0;
  let batches = 0;
  unfinished.delete(tenant.id);
  while (!stopping.aborted && conflicts < conflictsMax) {
    const now = clock.now();
    const until = instantAfter(now, -clockSkewMs);
    if (batches >= batchesPerTurn) {
      unfinished.set(tenant.id, skip);
      return;
    }
    if (found.length === 0) {
      if (all) {
        const left = await store.scan(
          impossibleDue(due.table, due.column, { tenant, until }),
          'vault',
        );
        if (left.length > 0) quarantine.report(impossible(undefined));
        return;
      }
      found = await find({ tenant, until, rowsMax, skip });
      all = found.length < rowsMax;
      continue;
    }
    const rows = found.slice(0, pace.batch);
    found = found.slice(rows.length);
    const batch = await decide(rows, { tenant: { ...tenant, quarantine }, now });
    batches++;
    const conflict = await commitBatch(store, batch);
    conflicts = conflict ? conflicts + 1 : 0;
    if (conflict) {
      all = false;
    } else {
      const { absent = 0 } = batch;
      if (absent > 0) all = false;
      run.count += batch.count;
      skip += rows.length - batch.count - absent;
    }
    await pace.rest(batch.count);
  }
}

/** True when another server was faster. */
async function commitBatch(store: Store, { change, entries }: Batch): Promise<boolean> {
  const [first, ...others] = entries;
  if (first === undefined) return false;
  const { conflict } = await store.commit({ ...change, entries: [first, ...others] });
  return conflict !== undefined;
}
