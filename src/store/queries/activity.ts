/** Queries about the activity of a tenant. */
import type { Instant } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import type { ActivitySpan } from '../activity-table.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';

interface ActivityPlace {
  readonly span: ActivitySpan;
  readonly slot: number;
}

/** The rows in these places, as far as there are any. */
export function activityIn(
  tenant: TenantId,
  places: readonly ActivityPlace[],
): Query<Row<'activity'>> {
  return (db) =>
    db
      .selectFrom('activity')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where(({ or, and, eb }) =>
        or(places.map(({ span, slot }) => and([eb('span', '=', span), eb('slot', '=', slot)]))),
      );
}

/** Of spans that began at that time or later. */
export function activitySince(
  tenant: TenantId,
  span: ActivitySpan,
  since: Instant,
): Query<Pick<Row<'activity'>, 'started_at' | 'figures'>> {
  return (db) =>
    db
      .selectFrom('activity')
      .select(['started_at', 'figures'])
      .where('tenant_id', '=', tenant)
      .where('span', '=', span)
      .where('started_at', '>=', since)
      .orderBy('started_at');
}
