/** The keys of a tenant by purpose and version, with how many rows are under each. */
import type { Clock } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import type { TenantId } from '../../base/ids.ts';
import type { DigestPurpose, Keyring, KeyState, Purpose } from '../../keys/keyring.ts';
import type { Actor } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { Tenants } from '../../rules/tenant.ts';
import {
  countsByVersion,
  readVersionCounts,
  type SealedName,
  sealedColumns,
  sealedNames,
  type VersionCount,
} from '../../store/queries/key-versions.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { tenantRowOf } from '../tenants/read.ts';

/** A version of a key. */
export interface ListedKey {
  /** As the command line and the API name it. */
  readonly purpose: string;
  /** Null for a key of the vault itself. */
  readonly tenant_id: TenantId | null;
  readonly version: number;
  readonly state: KeyState;
  /** Rows that are sealed under it, or have digests under it; null where the vault does not count them. */
  readonly rows: number | null;
  readonly created_at: string;
}

type RowCounts = Readonly<Record<SealedName, readonly VersionCount[]>>;

interface CountedKeys {
  readonly counts: RowCounts;
  readonly keyring: Keyring;
}

type CountRows = (counted: CountedKeys, version: number) => number;

/** The purposes whose keys can be counted and destroyed, one row each. */
const counters = {
  data: sealedBy('data'),
  reply: sealedBy('reply'),
  search: digestedBy('search', ['tokens'], ({ searchable }) => searchable),
  fingerprint: digestedBy(
    'fingerprint',
    ['tokens', 'token_intents'],
    ({ fingerprinted }) => fingerprinted,
  ),
} as const satisfies Partial<Record<Purpose, CountRows>>;

export type CountedPurpose = keyof typeof counters;

export const countedPurposes = Object.keys(counters) as readonly CountedPurpose[];

/** Parses the name of a purpose; `undefined` for another one. */
export function parseCountedPurpose(text: string): CountedPurpose | undefined {
  return countedPurposes.find((purpose) => purpose === text);
}

function sealedBy(purpose: 'data' | 'reply'): CountRows {
  return ({ counts }, version) => {
    const tables = sealedNames.filter((table) => sealedColumns[table].purpose === purpose);
    return sum(tables.flatMap((table) => counts[table]).filter((one) => one.version === version));
  };
}

/** The version of the data key that a row names tells under which version its digests are. */
function digestedBy(
  purpose: DigestPurpose,
  tables: readonly SealedName[],
  countOf: (count: VersionCount) => number,
): CountRows {
  return ({ counts, keyring }, version) =>
    sum(
      tables
        .flatMap((table) => counts[table])
        .filter((one) => keyring.digestVersion(purpose, one.version) === version)
        .map((one) => ({ rows: countOf(one) })),
    );
}

function sum(counts: readonly { readonly rows: number }[]): number {
  return counts.reduce((total, { rows }) => total + rows, 0);
}

export interface KeyListTools {
  readonly store: Pick<Store, 'scan'>;
  readonly tenants: Pick<Tenants, 'keyringOf'>;
}

/** All versions, also those that were destroyed. It reads every sealed row of the tenant's database. */
export async function listTenantKeys(
  { store, tenants }: KeyListTools,
  row: Row<'tenants'>,
): Promise<readonly ListedKey[]> {
  const keyring = await tenants.keyringOf(row);
  const counts = await countRows(store, row.tenant_id);
  return countedPurposes.flatMap((purpose) =>
    keyring.versions[purpose].map(({ version, state, createdAt }) => ({
      purpose,
      tenant_id: row.tenant_id,
      version,
      state,
      rows: counters[purpose]({ counts, keyring }, version),
      created_at: formatTimestamp(createdAt ?? row.created_at),
    })),
  );
}

/** The keys of the caller's tenant. */
export function readTenantKeys(
  { store, tenants, clock }: KeyListTools & { readonly tenants: Tenants; readonly clock: Clock },
  actor: Actor,
): Decide {
  return async () => {
    const row = await tenantRowOf(tenants, actor.tenant);
    const keys = await listTenantKeys({ store, tenants }, row);
    const fact = { entity: 'keyring', id: row.tenant_id, operation: 'list' } as const;
    return {
      change: { entries: [entryOf(actor, clock.now(), fact)] },
      reply: { status: 200, body: { keys } },
    };
  };
}

/** How many rows are under a version of a key. */
export async function rowsUnder(
  { store, tenants }: KeyListTools,
  row: Row<'tenants'>,
  { purpose, version }: { readonly purpose: CountedPurpose; readonly version: number },
): Promise<number> {
  const counts = await countRows(store, row.tenant_id);
  return counters[purpose]({ counts, keyring: await tenants.keyringOf(row) }, version);
}

async function countRows(store: Pick<Store, 'scan'>, tenant: TenantId): Promise<RowCounts> {
  const counted = await Promise.all(
    sealedNames.map(async (table) => {
      const rows = await store.scan(countsByVersion(table, tenant));
      return [table, readVersionCounts(rows)] as const;
    }),
  );
  return Object.fromEntries(counted) as unknown as RowCounts;
}

/** Rows of a tenant that the rotation has to seal again: those under earlier versions than the active ones. */
export async function rowsUnderEarlier(
  store: Pick<Store, 'scan'>,
  tenant: TenantId,
  keyring: Keyring,
): Promise<number> {
  const counts = await countRows(store, tenant);
  return sum(
    sealedNames.flatMap((table) => {
      const active = keyring.activeVersion(sealedColumns[table].purpose);
      return counts[table].filter(({ version }) => version < active);
    }),
  );
}
