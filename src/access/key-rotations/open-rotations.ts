/** Rotations that are not finished, found by the notes of the tenants that have any. */
import type { Clock } from '../../base/clock.ts';
import { dueWork } from '../../store/queries/due-tenants.ts';
import { rotationsOf } from '../../store/queries/key-rotations.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';

/** The note that a tenant has rotations. */
export const rotationWork = 'key rotation';

export interface OpenRotations {
  /** The oldest of each tenant first. */
  readonly open: readonly Row<'key_rotations'>[];
  /** Notes of tenants whose rotations have finished. */
  readonly over: readonly Row<'due_work'>[];
  /** False when there are more tenants than asked for. */
  readonly isWhole: boolean;
}

/** @param tenantsMax after so many tenants no more are read; others follow when some of them have finished. */
export async function openRotations(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  tenantsMax = Number.POSITIVE_INFINITY,
): Promise<OpenRotations> {
  const open: Row<'key_rotations'>[] = [];
  const over: Row<'due_work'>[] = [];
  let tenants = 0;
  for await (const page of dueWork(store, { work: rotationWork, until: clock.now() })) {
    for (const [tenant, notes] of Map.groupBy(page, ({ tenant_id }) => tenant_id)) {
      if (tenants >= tenantsMax) return { open, over, isWhole: false };
      // The notes were read before: a rotation that begins from here on has another one.
      const ofTenant = (await store.select(rotationsOf(tenant))).filter(
        ({ phase }) => phase !== 'finished',
      );
      open.push(...ofTenant);
      if (ofTenant.length === 0) over.push(...notes);
      else tenants += 1;
    }
  }
  return { open, over, isWhole: true };
}
