/** Reading the audit log. */
import { openCursor, sealCursor } from '../crypto/cursor.ts';
import type { Clock, Instant } from '../lib/clock.ts';
import { formatTimestamp, parseExpiry } from '../lib/dates.ts';
import { invalid } from '../lib/errors.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { entryOf } from './audit.ts';
import type { Caller } from './caller.ts';
import type { Decide } from './perform.ts';

export interface LogQuery {
  readonly entity_type?: string;
  readonly entity_id?: string;
  /** Inclusive. */
  readonly start_date?: string;
  /** Exclusive. */
  readonly end_date?: string;
  /** Cursor; takes the place of `page`. */
  readonly start?: string;
  /** From 1. */
  readonly page?: number;
  readonly size?: number;
}

export interface LogReading {
  readonly store: Store;
  readonly clock: Clock;
}

const sizeDefault = 20;
const route = 'GET /logs';

/** The place of an entry in the list: newest first, ties by stream and position. */
type Place = readonly [at: number, stream: string, seq: number];

/** Entries of the caller's tenant within its log retention. Reading them is itself an entry. */
export function listLogs({ store, clock }: LogReading, caller: Caller, query: LogQuery): Decide {
  const cursorKey = caller.tenant.keyring.secret('cursor');
  const size = query.size ?? sizeDefault;
  const after = query.start === undefined ? undefined : readCursor(cursorKey, query.start);
  const from = readDate(query.start_date, 'start_date');
  const until = readDate(query.end_date, 'end_date');
  return async () => {
    const now = clock.now();
    const oldest = Math.max(from ?? 0, now - caller.tenant.quotas.log_retention) as Instant;
    const rows = await store.select((db) => {
      let select = db
        .selectFrom('logs')
        .selectAll()
        .where('tenant_id', '=', caller.tenant.id)
        .where('created_at', '>=', oldest)
        .orderBy('created_at', 'desc')
        .orderBy('stream_id', 'desc')
        .orderBy('seq', 'desc')
        .limit(size + 1);
      if (until !== undefined) select = select.where('created_at', '<', until);
      if (query.entity_type !== undefined)
        select = select.where('entity_type', '=', query.entity_type);
      if (query.entity_id !== undefined) select = select.where('entity_id', '=', query.entity_id);
      if (after === undefined) return select.offset(((query.page ?? 1) - 1) * size);
      const [at, stream, seq] = after;
      return select.where(({ eb, refTuple, tuple }) =>
        eb(refTuple('created_at', 'stream_id', 'seq'), '<', tuple(at as Instant, stream, seq)),
      );
    });
    const page = rows.slice(0, size);
    const last = page.at(-1);
    const next =
      rows.length > size && last ? sealCursor(cursorKey, route, placeOf(last)) : undefined;
    return {
      change: { entries: [entryOf(caller, now, { entity: 'log', id: '*', operation: 'read' })] },
      reply: {
        status: 200,
        body: {
          pagination: { page_size: size, ...(next !== undefined && { next }) },
          data: page.map(viewLog),
        },
      },
    };
  };
}

function placeOf(row: Row<'logs'>): Place {
  return [row.created_at, row.stream_id, row.seq];
}

function readCursor(key: Parameters<typeof openCursor>[0], text: string): Place {
  const place = openCursor(key, route, text);
  if (place === undefined) throw invalid('start', 'must be the cursor of an earlier answer');
  return place as unknown as Place;
}

function readDate(text: string | undefined, path: string): Instant | undefined {
  if (text === undefined) return undefined;
  const date = parseExpiry(text);
  if (date === undefined) throw invalid(path, 'must be an ISO 8601 date or date-time');
  return date.at;
}

function viewLog(row: Row<'logs'>): object {
  const { tenant_id, actor_id, actor_type, entity_type, entity_id, operation, message } = row;
  return {
    tenant_id,
    ...(actor_id !== null && { actor_id }),
    actor_type,
    entity_type,
    entity_id,
    operation,
    message,
    created_at: formatTimestamp(row.created_at),
  };
}
