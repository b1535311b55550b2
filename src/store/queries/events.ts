/** Queries about events and their deliveries. */
import { sql } from 'kysely';
import type { TenantId } from '../../lib/ids.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';
import { storedTenant } from './stored.ts';

/** Events without a sequence, in the order of the commits that made them: of one entity, as they happened. */
export function undispatchedEvents({
  tenant,
  limit,
}: {
  readonly tenant: TenantId;
  readonly limit: number;
}): Query<Row<'events'>> {
  return (db) =>
    db
      .selectFrom('events')
      .select([
        'tenant_id',
        'event_id',
        'type',
        'entity_id',
        'created_at',
        'sequence',
        'proof',
        'body',
      ])
      .where('tenant_id', '=', storedTenant(tenant))
      .where('sequence', 'is', null)
      .orderBy(sql`rowid`)
      .orderBy('event_id')
      .limit(limit);
}
