/** The streams of a tenant's log and where each begins and ends, without reading the entries between. */
import { sql } from 'kysely';
import type { Instant } from '../../lib/clock.ts';
import type { TenantId } from '../../lib/ids.ts';
import type { Query } from '../store.ts';

export interface LogStream {
  readonly stream_id: string;
  /** The oldest entry that is stored. */
  readonly first_seq: number;
  readonly first_at: Instant;
  /** The newest entry. */
  readonly last_seq: number;
  readonly last_at: Instant;
  readonly last_hash: string;
  readonly last_entity_type: string;
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
export function logStreams({ tenant, after, streamsMax }: LogStreamPage): Query<LogStream> {
  const query = sql<LogStream>`
    with recursive streams (stream_id, place) as (
      select min(stream_id), 1 from logs where tenant_id = ${tenant} and stream_id > ${after}
      union all
      select
        (select min(l.stream_id) from logs l
          where l.tenant_id = ${tenant} and l.stream_id > streams.stream_id),
        place + 1
      from streams where stream_id is not null and place < ${streamsMax}
    )
    select s.stream_id, first.seq as first_seq, first.created_at as first_at,
      last.seq as last_seq, last.created_at as last_at, last.hash as last_hash,
      last.entity_type as last_entity_type
    from streams s
    join logs first on first.tenant_id = ${tenant} and first.stream_id = s.stream_id and first.seq =
      (select min(seq) from logs l where l.tenant_id = ${tenant} and l.stream_id = s.stream_id)
    join logs last on last.tenant_id = ${tenant} and last.stream_id = s.stream_id and last.seq =
      (select max(seq) from logs l where l.tenant_id = ${tenant} and l.stream_id = s.stream_id)
    order by s.stream_id`;
  return (db) => ({ compile: () => query.compile(db) });
}

export interface StreamPlace {
  readonly tenant: TenantId;
  readonly stream_id: string;
  /** The number of the last entry that is not looked at. */
  readonly after: number;
}

/** One entry that is more than the trace of signing or reading a checkpoint, if there is one. */
export function entryBeyondTraces({
  tenant,
  stream_id,
  after,
}: StreamPlace): Query<{ seq: number }> {
  return (db) =>
    db
      .selectFrom('logs')
      .select('seq')
      .where('tenant_id', '=', tenant)
      .where('stream_id', '=', stream_id)
      .where('seq', '>', after)
      .where((eb) =>
        eb.or([eb('entity_type', '<>', 'log_checkpoint'), eb('result', '<>', 'success')]),
      )
      .limit(1);
}
