/** Deliveries that the vault cannot have written so: they are over, and no longer in the way of the others. */
import type { Clock } from '../../base/clock.ts';
import { integrityError } from '../../base/errors.ts';
import type { Quarantine } from '../../rules/quarantine.ts';
import type { DueDelivery } from '../../store/event-queries/deliveries.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';

export interface SettingAside {
  readonly store: Store;
  readonly clock: Clock;
  readonly quarantine: Quarantine;
}

export function isWhole(row: DueDelivery): row is Row<'deliveries'> {
  return row.sequence !== null && row.created_at !== null && row.due_at !== null;
}

/** Nothing is sent. Callers see deliveries that have failed, and can ask for them again. */
export async function failUnreadable(
  { store, clock, quarantine }: SettingAside,
  rows: readonly DueDelivery[],
): Promise<void> {
  if (rows.length === 0) return;
  const at = clock.now();
  const attempts = JSON.stringify([{ at, milliseconds: 0, error: 'altered' }]);
  const failed = rows.map(
    ({ sequence, created_at, ...row }): Row<'deliveries'> => ({
      ...row,
      ...{ sequence: sequence ?? 0, created_at: created_at ?? at, due_at: at, attempts },
      state: 'failed',
    }),
  );
  for (const { delivery_id } of rows) {
    quarantine.report(integrityError(`the delivery ${delivery_id} was altered outside the vault`));
  }
  // What cannot be read cannot be named as it was, so it makes way for another with its key.
  await store.record({ remove: { deliveries: rows }, insert: { deliveries: failed } });
}
