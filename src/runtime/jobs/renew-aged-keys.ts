/** Begins rotations of data keys by age: each period a new key, and at the age limit all rows are sealed again. */
import { beginDueRotation } from '../../access/key-rotations/rotation.ts';
import type { VaultKeys } from '../../access/keyrings/vault-keys.ts';
import { day, type Instant, minute, parseInstant, second } from '../../base/clock.ts';
import { isIntegrityError } from '../../base/errors.ts';
import type { TenantId } from '../../base/ids.ts';
import type { Keyring, KeyVersion } from '../../keys/keyring.ts';
import { requireProven } from '../../rules/proven-row.ts';
import type { RotationKind } from '../../store/key-tables.ts';
import { createFailures, type TenantFailures } from '../../store/per-tenant/failures.ts';
import { tenantsAfter, tenantsWithAgedKeys } from '../../store/queries/tenants.ts';
import { type Unproven, unverifiedColumns } from '../../store/stored-row.ts';
import type { JobTools } from './batches.ts';
import type { Job } from './runner.ts';

/** Either is infinite where the operator switched it off. */
export interface DataKeyAges {
  /** A data key seals what is written within this time. */
  readonly keyPeriodMs: number;
  /** The age of a key at which rows under it are sealed again. */
  readonly keyMaxAgeMs: number;
}

/** Unless the operator sets others. */
export const dataKeyAgesDefault: DataKeyAges = { keyPeriodMs: 30 * day, keyMaxAgeMs: 365 * day };

/** Tenants whose keyrings are opened in one run because of what the rows of their rotations say. */
const tenantsMax = 200;
/** Tenants whose keyrings are opened in one run whatever those rows say. */
const comparedMax = 50;

const everyMsMax = 10 * minute;

interface AgeLimit {
  readonly ageMs: number;
  /** Rotations that make a new data key as well. */
  readonly kinds: readonly RotationKind[];
}

/**
 * The keyring says which rotation is due: an attacker with write access to the database can alter rows of rotations.
 * The rows name the tenants that are looked at first. All others follow, some in each run.
 */
export function renewAgedKeys(
  { store, clock, vaultKeys }: JobTools & { readonly vaultKeys: Pick<VaultKeys, 'openKeyring'> },
  ages: DataKeyAges = dataKeyAgesDefault,
): Job {
  const { keyPeriodMs, keyMaxAgeMs } = ages;
  // Every other rotation seals all rows again, and begins a data key.
  const whole: readonly RotationKind[] = ['data', 'search', 'fingerprint'];
  const allLimits: readonly AgeLimit[] = [
    { ageMs: keyMaxAgeMs, kinds: whole },
    { ageMs: keyPeriodMs, kinds: [...whole, 'period'] },
  ];
  const limits = allLimits.filter(({ ageMs }) => Number.isFinite(ageMs));
  let comparedUntil: TenantId | undefined;

  /** `undefined` for a tenant whose row was altered outside the vault: no rotation of it begins. */
  async function dueOf(row: Unproven<'tenants'>): Promise<DueKind | undefined> {
    const { tenant_id: tenant, keyring: wrapped } = unverifiedColumns(row);
    try {
      const keyring = await vaultKeys.openKeyring({ tenant, wrapped });
      const { created_at: madeAt } = requireProven({ keyring }, 'tenants', row);
      return dueKind(keyring, { madeAt, now: clock.now(), ages });
    } catch (error) {
      if (isIntegrityError(error)) return undefined;
      throw error;
    }
  }

  async function renewIfDue(row: Unproven<'tenants'>): Promise<boolean> {
    const { tenant_id, deleted_at, away_until } = unverifiedColumns(row);
    // Another vault renews the keys of a tenant that has moved there.
    const isHere = deleted_at === null && away_until === null;
    const kind = isHere ? await dueOf(row) : undefined;
    const change = kind && (await beginDueRotation({ store, clock }, tenant_id, kind));
    if (change === undefined) return false;
    const { conflict } = await store.commit(change);
    return conflict === undefined;
  }

  async function renewNamed(failures: TenantFailures, stopping: AbortSignal): Promise<number> {
    let begun = 0;
    for (const { ageMs, kinds } of limits) {
      const since = parseInstant(Math.max(0, clock.now() - ageMs));
      const query = tenantsWithAgedKeys({ since, kinds, limit: tenantsMax });
      for (const row of await store.select(query)) {
        if (stopping.aborted) return begun;
        if (await failures.attempt(() => renewIfDue(row))) begun += 1;
      }
    }
    return begun;
  }

  async function renewOthers(failures: TenantFailures, stopping: AbortSignal): Promise<number> {
    const rows = await store.select(tenantsAfter(comparedUntil, comparedMax));
    let begun = 0;
    for (const row of rows) {
      if (stopping.aborted) return begun;
      comparedUntil = row.tenant_id;
      const isBegun = await failures.attempt(() => renewIfDue(row));
      // The source of the root key does not respond, and the next run goes on after this tenant.
      if (isBegun === undefined) return begun;
      if (isBegun) begun += 1;
    }
    if (rows.length < comparedMax) comparedUntil = undefined;
    return begun;
  }

  async function renew(stopping: AbortSignal): Promise<number> {
    if (limits.length === 0) return 0;
    const failures = createFailures(store);
    const begun = await renewNamed(failures, stopping);
    const others = await renewOthers(failures, stopping);
    failures.report();
    return begun + others;
  }

  const everyMs = Math.min(everyMsMax, Math.max(second, Math.min(keyPeriodMs, keyMaxAgeMs) / 4));
  return { name: 'renew aged keys', everyMs, run: renew };
}

type DueKind = Extract<RotationKind, 'data' | 'period'>;

interface DueAt {
  /** When the tenant was made, and with it the first version of each key. */
  readonly madeAt: Instant;
  readonly now: Instant;
  readonly ages: DataKeyAges;
}

/** The rotation that the ages of the data keys ask for. */
function dueKind(keyring: Keyring, { madeAt, now, ages }: DueAt): DueKind | undefined {
  const versions = keyring.versions.data;
  const ageOf = (version: KeyVersion | undefined) => now - (version?.createdAt ?? madeAt);
  // Since all rows were sealed again, or while they are, none stays under an earlier version.
  const oldest = versions.findLast(
    ({ resealing, resealedAt }) => resealing !== undefined || resealedAt !== undefined,
  );
  if (ageOf(oldest ?? versions[0]) >= ages.keyMaxAgeMs) return 'data';
  return ageOf(versions.at(-1)) >= ages.keyPeriodMs ? 'period' : undefined;
}
