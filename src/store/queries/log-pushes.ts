/** Queries about pushing the log: how far each stream was pushed, and the blocks that follow. */
import type { TenantId } from '../../base/ids.ts';
import { blockMax } from '../log-chain/block.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';
import type { StreamPlace } from './log-streams.ts';
import { hasExactIntegers } from './logs.ts';

export function pushedPlaces(tenant: TenantId): Query<Row<'log_pushes'>> {
  return (db) => db.selectFrom('log_pushes').selectAll().where('tenant_id', '=', tenant);
}

/** So many blocks of a stream, from the one on that has an entry after that place. */
export function blocksToPush(place: StreamPlace & { readonly limit: number }): Query<Row<'logs'>> {
  const { tenant, stream_id, after, limit } = place;
  return (db) =>
    db
      .selectFrom('logs')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('stream_id', '=', stream_id)
      .where(hasExactIntegers)
      // The key knows beginnings, and a block that ends later begins no earlier than this.
      .where('first_seq', '>', after - blockMax.entries)
      .where('last_seq', '>', after)
      .orderBy('first_seq')
      .limit(limit);
}

/** The block before, whose hash begins the chain of what follows. */
export function blockBefore({
  tenant,
  stream_id,
  after,
}: StreamPlace): Query<Pick<Row<'logs'>, 'last_seq' | 'hash'>> {
  return (db) =>
    db
      .selectFrom('logs')
      .select(['last_seq', 'hash'])
      .where('tenant_id', '=', tenant)
      .where('stream_id', '=', stream_id)
      .where('last_seq', '=', after)
      .where('first_seq', '>', after - blockMax.entries - 1)
      .where(hasExactIntegers)
      .limit(1);
}
