/** Reading the audit log. */
import { openCursor, sealCursor } from '../crypto/cursor.ts';
import { type Clock, type Instant, minute, parseInstant } from '../lib/clock.ts';
import { formatTimestamp, parseExpiry } from '../lib/dates.ts';
import { invalid } from '../lib/errors.ts';
import { ExpiringMap } from '../lib/expiring-map.ts';
import type { Query, Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { displayNames, entryOf } from './audit.ts';
import type { Caller } from './caller.ts';
import type { Decide } from './perform.ts';
import type { Tenant } from './tenants.ts';

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
  /** Where lists by `page` began, by caller and filter. */
  readonly anchors: ExpiringMap<string, Place>;
}

/** The place of an entry in the list: newest first, ties by stream and position. */
type Place = readonly [at: Instant, stream: string, seq: number];

const sizeDefault = 20;

/** How long one who counts `page` upwards may take from the first page to the last. */
const anchorAgeMsMax = 10 * minute;
const anchorsMax = 10_000;

export function createLogReading(tools: Pick<LogReading, 'store' | 'clock'>): LogReading {
  const { clock } = tools;
  const limits = { ageMsMax: anchorAgeMsMax, entriesMax: anchorsMax };
  return { ...tools, anchors: new ExpiringMap({ clock, ...limits }) };
}

/**
 * Entries of the caller's tenant within its log retention. Reading them is itself an entry, so the
 * list grows while it is read: a cursor continues after the last entry shown, and pages are counted
 * from the entry that was the newest when the caller read page 1.
 * @throws VaultError `validation_failed` for a date that is none, and a cursor of another list.
 */
export function listLogs(tools: LogReading, caller: Caller, query: LogQuery): Decide {
  const { store, clock, anchors } = tools;
  const { tenant } = caller;
  const { entity_type, entity_id, start_date, end_date, size = sizeDefault } = query;
  const from = readDate(start_date, 'start_date');
  const until = readDate(end_date, 'end_date');
  const cursorKey = tenant.keyring.secret('cursor');
  const list = `GET /logs ${JSON.stringify([entity_type, entity_id, from, until])}`;
  const after = query.start === undefined ? undefined : readCursor(cursorKey, list, query.start);
  const anchor = `${caller.application} ${list}`;
  const page = after ? undefined : (query.page ?? 1);
  return async () => {
    const now = clock.now();
    const oldest = parseInstant(Math.max(from ?? 0, oldestReadable(tenant, now)));
    const position: Position =
      page === undefined
        ? { after }
        : { upTo: page === 1 ? undefined : anchors.get(anchor), skip: (page - 1) * size };
    const rows = await store.select(
      selectLogs({ tenant: tenant.id, entity_type, entity_id, oldest, until, size, ...position }),
    );
    if (page === 1 && rows[0]) anchors.set(anchor, placeOf(rows[0]));
    const shown = rows.slice(0, size);
    const last = shown.at(-1);
    const next = rows.length > size && last && sealCursor(cursorKey, list, placeOf(last));
    return {
      change: {
        entries: [entryOf(caller, now, { entity: 'log', id: tenant.id, operation: 'read' })],
      },
      reply: {
        status: 200,
        body: {
          pagination: {
            page_size: size,
            ...(page !== undefined && { page_number: page }),
            ...(next && { next }),
          },
          data: shown.map(viewLog),
        },
      },
    };
  };
}

/** Entries from before this moment are beyond the tenant's log retention. */
export function oldestReadable({ quotas }: Tenant, now: Instant): Instant {
  return parseInstant(Math.max(0, now - quotas.log_retention));
}

/** The values that `entity_type` can have, in alphabetical order of their names. */
export function listEntityTypes({ clock }: LogReading, caller: Caller): Decide {
  return async () => ({
    change: {
      entries: [
        entryOf(caller, clock.now(), { entity: 'log', id: caller.tenant.id, operation: 'list' }),
      ],
    },
    reply: {
      status: 200,
      body: Object.entries(displayNames).map(([value, display_name]) => ({ display_name, value })),
    },
  });
}

interface Position {
  readonly after?: Place | undefined;
  readonly upTo?: Place | undefined;
  readonly skip?: number;
}

interface Selection extends Position {
  readonly tenant: Row<'logs'>['tenant_id'];
  readonly entity_type: string | undefined;
  readonly entity_id: string | undefined;
  readonly oldest: Instant;
  readonly until: Instant | undefined;
  readonly size: number;
}

/** One row more than the page holds, which says whether another page follows. */
function selectLogs(selection: Selection): Query<Row<'logs'>> {
  const { tenant, entity_type, entity_id, oldest, until, after, upTo, skip, size } = selection;
  return (db) => {
    let select = db
      .selectFrom('logs')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('created_at', '>=', oldest)
      .orderBy('created_at', 'desc')
      .orderBy('stream_id', 'desc')
      .orderBy('seq', 'desc')
      .limit(size + 1);
    if (until !== undefined) select = select.where('created_at', '<', until);
    if (entity_type !== undefined) select = select.where('entity_type', '=', entity_type);
    if (entity_id !== undefined) select = select.where('entity_id', '=', entity_id);
    const bound = after ?? upTo;
    if (bound) {
      // The index knows times, so the time is said apart from the place.
      select = select
        .where('created_at', '<=', bound[0])
        .where(({ eb, refTuple, tuple }) =>
          eb(refTuple('created_at', 'stream_id', 'seq'), after ? '<' : '<=', tuple(...bound)),
        );
    }
    return skip === undefined ? select : select.offset(skip);
  };
}

function placeOf(row: Row<'logs'>): Place {
  return [row.created_at, row.stream_id, row.seq];
}

function readCursor(key: Parameters<typeof openCursor>[0], list: string, text: string): Place {
  const place = openCursor(key, list, text);
  if (place !== undefined) return place as unknown as Place;
  throw invalid('start', 'must be the cursor of an earlier answer, with the same filters');
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
