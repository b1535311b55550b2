/** Queries about events and their deliveries. */
import { sql } from 'kysely';
import type { EventId, TenantId } from '../../base/ids.ts';
import { storedId, storedTenant } from '../queries/stored.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';

/** Without what it says, and when it happened. */
export type UndispatchedEvent = Pick<
  Row<'events'>,
  'tenant_id' | 'event_id' | 'type' | 'entity_id'
>;

/** Events without a sequence, in the order of the commits that made them: of one entity, as they happened. */
export function undispatchedEvents({
  tenant,
  limit,
}: {
  readonly tenant: TenantId;
  readonly limit: number;
}): Query<UndispatchedEvent> {
  return (db) =>
    db
      .selectFrom('events')
      .select(['tenant_id', 'event_id', 'type', 'entity_id'])
      .where('tenant_id', '=', storedTenant(tenant))
      .where('sequence', 'is', null)
      .orderBy(sql`rowid`)
      .orderBy('event_id')
      .limit(limit);
}

export interface DispatchedEvents {
  readonly tenant: TenantId;
  readonly types: readonly string[];
  /** Inclusive. */
  readonly from: EventId;
  /** Exclusive. */
  readonly to: EventId;
  readonly limit: number;
}

type DispatchedEvent = Pick<Row<'events'>, 'tenant_id' | 'event_id' | 'type' | 'entity_id'> & {
  readonly sequence: number;
};

/** Oldest first, without what they say. */
export function dispatchedEvents(wanted: DispatchedEvents): Query<DispatchedEvent> {
  const { tenant, types, from, to, limit } = wanted;
  return (db) =>
    db
      .selectFrom('events')
      .select(['tenant_id', 'event_id', 'type', 'entity_id'])
      .select((eb) => eb.ref('sequence').$notNull().as('sequence'))
      .where('tenant_id', '=', storedTenant(tenant))
      .where('event_id', '>=', storedId(from))
      .where('event_id', '<', storedId(to))
      .where('type', 'in', types)
      .where('sequence', 'is not', null)
      .orderBy('event_id')
      .limit(limit);
}
