/** The streams of a tenant's log and where each begins and ends, without reading the entries between. */
import { sql } from 'kysely';
import type { Instant } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import { blockMax } from '../log-chain/block.ts';
import { prepared } from '../prepared.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';
import { hasExactIntegers } from './logs.ts';

export interface LogStream {
  readonly stream_id: string;
  /** The oldest entry that is stored. */
  readonly first_seq: number;
  /** When its block ends. */
  readonly first_until: Instant;
  /** The newest entry. */
  readonly last_seq: number;
  readonly last_hash: string;
  /** When its block ends. */
  readonly last_at: Instant;
}

export interface LogStreamPage {
  readonly tenant: TenantId;
  /** The last stream of the page before; empty for the first page. */
  readonly after: string;
  readonly streamsMax: number;
}

/**
 * Streams in the order of their ids. Hops from one to the next through the primary key, so it costs
 * a few look-ups for each stream, however many entries there are.
 */
export const logStreams = prepared<LogStreamPage, LogStream>((placeOf) => {
  const tenant = placeOf('tenant');
  const query = sql<LogStream>`
    with recursive streams (stream_id, place) as (
      select min(stream_id), 1 from logs where tenant_id = ${tenant} and stream_id > ${placeOf('after')}
      union all
      select
        (select min(l.stream_id) from logs l
          where l.tenant_id = ${tenant} and l.stream_id > streams.stream_id),
        place + 1
      from streams where stream_id is not null and place < ${placeOf('streamsMax')}
    )
    select s.stream_id, first.first_seq, first.last_at as first_until,
      last.last_seq, last.hash as last_hash, last.last_at
    from streams s
    join logs first on first.tenant_id = ${tenant} and first.stream_id = s.stream_id and first.first_seq =
      (select min(first_seq) from logs l
        where l.tenant_id = ${tenant} and l.stream_id = s.stream_id and ${hasExactIntegers})
    join logs last on last.tenant_id = ${tenant} and last.stream_id = s.stream_id and last.first_seq =
      (select max(first_seq) from logs l
        where l.tenant_id = ${tenant} and l.stream_id = s.stream_id and ${hasExactIntegers})
    order by s.stream_id`;
  return (db) => ({ compile: () => query.compile(db) });
}, 'log streams');

export interface StreamPlace {
  readonly tenant: TenantId;
  readonly stream_id: string;
  /** The number of the last entry that is not looked at. */
  readonly after: number;
}

/** Where the block ends that has an entry: its number, and its hash, which covers all entries before it. */
export function blockEnd({
  tenant,
  stream_id,
  seq,
}: {
  readonly tenant: TenantId;
  readonly stream_id: string;
  readonly seq: number;
}): Query<Pick<Row<'logs'>, 'last_seq' | 'hash'>> {
  return (db) =>
    db
      .selectFrom('logs')
      .select(['last_seq', 'hash'])
      .where('tenant_id', '=', tenant)
      .where('stream_id', '=', stream_id)
      .where('first_seq', '<=', seq)
      .where(hasExactIntegers)
      .orderBy('first_seq', 'desc')
      .limit(1);
}

type BlockBeyond = Pick<Row<'logs'>, 'first_seq' | 'body'>;

/** The blocks of a stream that have entries after that place. */
export function blocksBeyond(place: StreamPlace): Query<BlockBeyond> {
  // The key knows beginnings, and a block that ends later begins no earlier than this.
  return blocksFrom({ ...place, begin: place.after - blockMax.entries });
}

const blocksFrom = prepared<StreamPlace & { readonly begin: number }, BlockBeyond>(
  (placeOf) => (db) =>
    db
      .selectFrom('logs')
      .select(['first_seq', 'body'])
      .where('tenant_id', '=', placeOf('tenant'))
      .where('stream_id', '=', placeOf('stream_id'))
      .where(hasExactIntegers)
      .where('first_seq', '>', placeOf('begin'))
      .where('last_seq', '>', placeOf('after'))
      .orderBy('first_seq'),
  'log blocks beyond',
);
