/** Queries about what alerts have to remember. */
import type { TenantId } from '../../base/ids.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';

export function honeyTokens(tenant: TenantId): Query<Pick<Row<'alert_marks'>, 'subject'>> {
  return (db) =>
    db
      .selectFrom('alert_marks')
      .select('subject')
      .where('tenant_id', '=', tenant)
      .where('kind', '=', 'honey');
}

/** From which the key was used, up to a number of them. */
export function addressesOfKey(
  tenant: TenantId,
  key: string,
  limit: number,
): Query<Pick<Row<'alert_marks'>, 'place'>> {
  return (db) =>
    db
      .selectFrom('alert_marks')
      .select('place')
      .where('tenant_id', '=', tenant)
      .where('kind', '=', 'address')
      .where('subject', '=', key)
      .limit(limit);
}
