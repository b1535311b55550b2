/** Nothing is stored under a key that was destroyed, also by a request that began long before. */
import { VaultError } from '../../base/errors.ts';
import { keyVersionOf } from '../../keys/envelope.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import type { Change, ChangedRows } from '../../store/change.ts';
import type { CommitStep } from '../../store/commit/steps.ts';
import { type SealedName, sealedColumns, sealedNames } from '../../store/queries/key-versions.ts';
import type { AnyRow } from '../../store/tables.ts';

/**
 * A step of every commit. It throws `unavailable` for a row that is sealed under a key that is destroyed by now. The
 * keyring is at most a second old.
 */
export function requireLivingKeys(tenants: Pick<Tenants, 'known' | 'find'>): CommitStep {
  return {
    isForRows: true,
    prepare: (change) => {
      if (!writesSealedRows(change)) return change;
      const ids = [...new Set(change.entries.map(({ tenant_id }) => tenant_id))];
      const known = ids.flatMap((id) => tenants.known(id) ?? []);
      if (known.length === ids.length) return checked(change, known);
      return Promise.all(ids.map(tenants.find)).then((found) =>
        checked(
          change,
          found.filter((one) => one !== undefined),
        ),
      );
    },
  };
}

const writing = ['insert', 'replace', 'reseal', 'refingerprint'] as const;

function writesSealedRows(change: Change): boolean {
  for (const action of writing) {
    const rows = change[action] as ChangedRows | undefined;
    if (rows && sealedNames.some((table) => rows[table]?.length)) return true;
  }
  return false;
}

function checked(change: Change, tenants: readonly Tenant[]): Change {
  for (const action of writing) {
    const rows = change[action] as ChangedRows | undefined;
    if (rows === undefined) continue;
    for (const table of sealedNames) {
      for (const row of rows[table] ?? []) requireLiving(tenants, table, row);
    }
  }
  return change;
}

function requireLiving(tenants: readonly Tenant[], table: SealedName, row: AnyRow): void {
  const { column, purpose } = sealedColumns[table];
  const sealed = row[column];
  const version = sealed instanceof Uint8Array ? keyVersionOf(sealed) : undefined;
  const tenant = tenants.find(({ id }) => id === row['tenant_id']);
  if (version === undefined || tenant === undefined) return;
  if (tenant.keyring.versions[purpose][version - 1]?.state !== 'destroyed') return;
  throw new VaultError('unavailable', {
    public: 'A key of the tenant was destroyed during the request. Nothing was done; try again.',
    internal: `a row of ${table} is sealed under ${purpose} key ${version}, which is destroyed`,
    headers: { 'retry-after': '1' },
  });
}
