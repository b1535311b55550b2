/** Reading the audit log. */

import { type Clock, type Instant, minute, parseInstant } from '../base/clock.ts';
import { parseContainer } from '../base/container.ts';
import { formatTimestamp, parseExpiry } from '../base/dates.ts';
import { invalid } from '../base/errors.ts';
import { ExpiringMap } from '../base/expiring-map.ts';
import { openCursor, sealCursor } from '../keys/cursor.ts';
import type { Caller } from '../rules/caller.ts';
import { displayNames, entryOf } from '../rules/log-entries.ts';
import type { Decide } from '../rules/operation.ts';
import type { Tenant } from '../rules/tenant.ts';
import { disclosureOf, type Shown, type Through } from '../store/log-chain/disclosure.ts';
import type { PlacedEntry } from '../store/log-chain/entries.ts';
import type { Store } from '../store/store.ts';
import { findLogs, type LogPosition, logPositionOf, sessionOf } from './find.ts';

export interface LogQuery {
  readonly entity_type?: string;
  readonly entity_id?: string;
  readonly shown?: Shown;
  readonly through?: Through;
  readonly actor_id?: string;
  readonly key_id?: string;
  readonly session_id?: string;
  readonly address?: string;
  readonly operation?: string;
  readonly result?: string;
  readonly container?: string;
  readonly trace_id?: string;
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
  readonly pageEnds: PageEnds;
}

/** The entry after which a page begins, for callers who page by number. */
export interface PageEnds {
  get(page: string): Promise<LogPosition | undefined>;
  set(page: string, end: LogPosition): Promise<void>;
}

const sizeDefault = 20;

/** How long a caller may take from one page to the next. */
const turnAgeMsMax = 10 * minute;
const turnsMax = 10_000;

export function createPageEnds(clock: Clock): PageEnds {
  const limits = { clock, ageMsMax: turnAgeMsMax, entriesMax: turnsMax };
  const ends = new ExpiringMap<string, LogPosition>(limits);
  return { get: async (page) => ends.get(page), set: async (page, end) => ends.set(page, end) };
}

/**
 * Entries of the caller's tenant within its log retention. Each read adds an entry, so the list grows
 * while it is read. A caller who pages by number therefore continues, like one who uses the cursor, after the
 * last entry of the previous page, if this server remembers that page. A server that does not
 * counts from the newest entry, so that entries may be repeated or left out.
 * @throws VaultError `validation_failed` for an invalid date, and for a cursor of another list.
 */
export function listLogs(tools: LogReading, caller: Caller, query: LogQuery): Decide {
  const { store, clock, pageEnds } = tools;
  const { tenant } = caller;
  const { start_date, end_date, start, page: _page, size = sizeDefault, ...facts } = query;
  const from = readDate(start_date, 'start_date');
  const until = readDate(end_date, 'end_date');
  const { entity_type, entity_id } = facts;
  const wanted = { ...facts, entity_type, entity_id, container: readContainer(facts.container) };
  const cursorKey = tenant.keyring.secret('cursor');
  const list = `GET /logs ${JSON.stringify([from, until, Object.entries(wanted).sort()])}`;
  const cursor = start === undefined ? undefined : readCursor(cursorKey, list, start);
  const page = cursor ? undefined : (query.page ?? 1);
  const pageKey = (number: number) => `${caller.application} ${size} ${number} ${list}`;
  return async () => {
    const now = clock.now();
    const oldest = parseInstant(Math.max(from ?? 0, oldestReadable(tenant, now)));
    const after = cursor ?? (page && page > 1 ? await pageEnds.get(pageKey(page)) : undefined);
    const skip = after || page === undefined ? 0 : (page - 1) * size;
    const index = { keyring: tenant.keyring, now };
    const filter = { ...wanted, tenant: tenant.id, oldest, until, index };
    const entries = await findLogs(store, { ...filter, after, skip, limit: size + 1 });
    const listed = entries.slice(0, size);
    const last = listed.at(-1);
    if (page !== undefined && last) await pageEnds.set(pageKey(page + 1), logPositionOf(last));
    const next = entries.length > size && last && sealCursor(cursorKey, list, logPositionOf(last));
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
          data: listed.map(viewLog),
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
export function listEntityTypes({ clock }: Pick<LogReading, 'clock'>, caller: Caller): Decide {
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

function readCursor(
  key: Parameters<typeof openCursor>[0],
  list: string,
  text: string,
): LogPosition {
  const position = openCursor(key, list, text);
  if (position !== undefined) return position as unknown as LogPosition;
  throw invalid('start', 'must be the cursor of an earlier response with the same filters');
}

function readDate(text: string | undefined, path: string): Instant | undefined {
  if (text === undefined) return undefined;
  const date = parseExpiry(text);
  if (date === undefined) throw invalid(path, 'must be an ISO 8601 date or date-time');
  return date.at;
}

function readContainer(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const container = parseContainer(text);
  if (container === undefined)
    throw invalid('container', 'must be a container, such as /pci/high/');
  return container;
}

/** What the log says of one entry, to whoever may read it. What is not known is absent. */
export function viewLog(entry: PlacedEntry): object {
  const { tenant_id, actor_id, actor_type, entity_type, entity_id, operation, message } = entry;
  const { disclosure, source, result, container, origin, trace_id } = entry;
  const application = actor_type === 'application' ? actor_id : source?.application_id;
  const details = {
    actor_id,
    application_id: application,
    session_id: sessionOf(entry),
    ...source,
    ...(application && { application_id: application }),
    container,
    address: origin,
    trace_id,
  };
  return {
    tenant_id,
    actor_type,
    entity_type,
    entity_id,
    operation,
    message,
    result,
    ...(disclosure !== null && disclosureOf(disclosure)),
    ...Object.fromEntries(Object.entries(details).filter(([, value]) => value != null)),
    created_at: formatTimestamp(entry.created_at),
  };
}
