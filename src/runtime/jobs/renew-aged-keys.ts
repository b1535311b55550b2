/** Begins rotations of data keys by their age: each month a new key, and each year all rows are sealed again. */
import { beginDueRotation } from '../../access/key-rotations/rotation.ts';
import { day, minute, parseInstant, second } from '../../base/clock.ts';
import type { RotationKind } from '../../store/key-tables.ts';
import { createFailures } from '../../store/per-tenant/failures.ts';
import { tenantsWithAgedKeys } from '../../store/queries/tenants.ts';
import type { JobTools } from './batches.ts';
import type { Job } from './runner.ts';

/** A data key seals what is written within this time. */
export const keyPeriodMs = 30 * day;

/** Unless the operator sets another age. */
export const keyMaxAgeMsDefault = 365 * day;

/** Tenants whose rotations begin in one run. Each of them costs a call to the source of the root key. */
const tenantsMax = 200;

const everyMsMax = 10 * minute;

interface AgeLimit {
  readonly kind: RotationKind;
  readonly ageMs: number;
  /** Rotations that make a new data key as well. */
  readonly kinds: readonly RotationKind[];
}

/** @param keyMaxAgeMs the age at which rows are sealed again; never if it is infinite. */
export function renewAgedKeys(
  { store, clock, tenants }: JobTools,
  keyMaxAgeMs: number = keyMaxAgeMsDefault,
): Job {
  // Every other rotation seals all rows again, and begins a data key.
  const whole: readonly RotationKind[] = ['data', 'search', 'fingerprint'];
  const limits: readonly AgeLimit[] = [
    { kind: 'data', ageMs: keyMaxAgeMs, kinds: whole },
    { kind: 'period', ageMs: keyPeriodMs, kinds: [...whole, 'period'] },
  ];

  async function renew(stopping: AbortSignal): Promise<number> {
    const failures = createFailures(store);
    let begun = 0;
    for (const { kind, ageMs, kinds } of limits) {
      const since = clock.now() - ageMs;
      if (!(since >= 0)) continue;
      const query = { since: parseInstant(since), kinds, limit: tenantsMax };
      for (const { tenant_id } of await store.select(tenantsWithAgedKeys(query))) {
        if (stopping.aborted) return begun;
        const isBegun = await failures.attempt(async () => {
          // No rotation of a tenant begins whose row was altered outside the vault.
          if ((await tenants.find(tenant_id)) === undefined) return false;
          const change = await beginDueRotation({ store, clock }, tenant_id, kind);
          if (change === undefined) return false;
          const { conflict } = await store.commit(change);
          return conflict === undefined;
        });
        if (isBegun) begun += 1;
      }
    }
    failures.report();
    return begun;
  }

  const everyMs = Math.min(everyMsMax, Math.max(second, keyMaxAgeMs / 4));
  return { name: 'renew aged keys', everyMs, run: renew };
}
