/** The keys of a tenant by purpose and version, with how many rows are under each. */
import type { Clock } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import type { TenantId } from '../../base/ids.ts';
import type { DigestPurpose, Keyring, KeyState, KeyVersion, Purpose } from '../../keys/keyring.ts';
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
import { pairOf } from '../keyrings/signing-pairs.ts';
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

/** What is under it leaves the vault, as a signature or a cursor. No stored row needs it. */
const noRows: CountRows = () => 0;

interface ListedPurpose {
  /** In the keyring. */
  readonly purpose: Purpose;
  /** Absent where rows are not counted: proofs of rows are in nearly all tables, and in every block of the log. */
  readonly count?: CountRows;
}

/** The purposes as callers name them, one row each. */
const listed = {
  data: { purpose: 'data', count: sealedBy('data') },
  reply: { purpose: 'reply', count: sealedBy('reply') },
  search: {
    purpose: 'search',
    count: digestedBy('search', ['tokens'], ({ searchable }) => searchable),
  },
  fingerprint: {
    purpose: 'fingerprint',
    count: digestedBy(
      'fingerprint',
      ['tokens', 'token_intents'],
      ({ fingerprinted }) => fingerprinted,
    ),
  },
  row: { purpose: 'row' },
  cursor: { purpose: 'cursor', count: noRows },
  log: { purpose: 'audit', count: noRows },
  webhooks: { purpose: 'webhook', count: noRows },
} as const satisfies Record<string, ListedPurpose>;

export type KeyPurpose = keyof typeof listed;

export const keyPurposes = Object.keys(listed) as readonly KeyPurpose[];

/** Parses the name of a purpose; `undefined` for another one. */
export function parseKeyPurpose(text: string): KeyPurpose | undefined {
  return keyPurposes.find((purpose) => purpose === text);
}

/** A version of a key of a tenant, as callers name it. */
export interface NamedVersion {
  readonly purpose: KeyPurpose;
  readonly version: number;
}

/** The purpose in the keyring, and the entry of the version there; `undefined` for one that never was. */
export function findVersion(
  keyring: Keyring,
  { purpose: name, version }: NamedVersion,
): { readonly purpose: Purpose; readonly entry: KeyVersion } | undefined {
  const { purpose } = listed[name];
  const entry = keyring.versions[purpose].find((one) => shownVersion(name, one) === version);
  return entry && { purpose, entry };
}

/** Receivers of webhooks know a key by the number of its pair. */
function shownVersion(name: KeyPurpose, entry: KeyVersion): number {
  return name === 'webhooks' ? pairOf(entry) : entry.version;
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

/** All versions, also those that were destroyed. Counting reads every sealed row of the tenant's database. */
export async function listTenantKeys(
  { store, tenants }: KeyListTools,
  row: Row<'tenants'>,
  { isCounted = true } = {},
): Promise<readonly ListedKey[]> {
  const keyring = await tenants.keyringOf(row);
  const counts = isCounted ? await countRows(store, row.tenant_id) : undefined;
  return keyPurposes.flatMap((name) => {
    const { purpose, count }: ListedPurpose = listed[name];
    return keyring.versions[purpose].map((entry) => ({
      purpose: name,
      tenant_id: row.tenant_id,
      version: shownVersion(name, entry),
      state: entry.state,
      rows: counts && count ? count({ counts, keyring }, entry.version) : null,
      created_at: formatTimestamp(entry.createdAt ?? row.created_at),
    }));
  });
}

/** The keys of the caller's tenant. */
export function readTenantKeys(
  { store, tenants, clock }: KeyListTools & { readonly tenants: Tenants; readonly clock: Clock },
  actor: Actor,
  { counts }: { readonly counts?: 'none' } = {},
): Decide {
  return async () => {
    const row = await tenantRowOf(tenants, actor.tenant);
    const isCounted = counts !== 'none';
    const keys = await listTenantKeys({ store, tenants }, row, { isCounted });
    const fact = { entity: 'keyring', id: row.tenant_id, operation: 'list' } as const;
    return {
      change: { entries: [entryOf(actor, clock.now(), fact)] },
      reply: { status: 200, body: { keys } },
    };
  };
}

/** How many rows are under a version of a key; null where the vault does not count them. */
export async function rowsUnder(
  { store, tenants }: KeyListTools,
  row: Row<'tenants'>,
  { purpose, version }: NamedVersion,
): Promise<number | null> {
  const { count }: ListedPurpose = listed[purpose];
  if (count === undefined) return null;
  if (count === noRows) return 0;
  const counts = await countRows(store, row.tenant_id);
  return count({ counts, keyring: await tenants.keyringOf(row) }, version);
}

async function countRows(store: Pick<Store, 'scan'>, tenant: TenantId): Promise<RowCounts> {
  const counted = await Promise.all(
    sealedNames.map(async (table) => {
      const rows = await store.scan(countsByVersion(table, tenant), { tenant, name: 'keys' });
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
