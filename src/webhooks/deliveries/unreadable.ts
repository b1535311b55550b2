/** Fails deliveries that the vault cannot have written in this form, so that they do not block the others. */
import type { Clock } from '../../base/clock.ts';
import { integrityError } from '../../base/errors.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { DueDelivery } from '../../store/event-queries/deliveries.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';

export interface SettingAside {
  readonly store: Store;
  readonly clock: Clock;
}

export function isWhole(row: DueDelivery): row is Row<'deliveries'> {
  return row.sequence !== null && row.created_at !== null && row.due_at !== null;
}

/** Nothing is sent. Callers see failed deliveries, and can request them again. */
export async function failUnreadable(
  { store, clock }: SettingAside,
  { quarantine }: Pick<Tenant, 'quarantine'>,
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
  // An unreadable delivery has no usable name, so a new row with its key replaces it.
  await store.record({ remove: { deliveries: rows }, insert: { deliveries: failed } });
}
