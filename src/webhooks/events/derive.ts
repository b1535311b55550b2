/** Derives events from changes: an event is committed in the same transaction as the change that caused it. */
import {
  type ApplicationId,
  createTimedUuids,
  type EventId,
  type TenantId,
} from '../../base/ids.ts';
import type { JsonObject } from '../../base/json.ts';
import { createPause } from '../../base/pauses.ts';
import type { Random } from '../../base/random.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import type { Change, ChangedRows } from '../../store/change.ts';
import type { CommitStep } from '../../store/commit/steps.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import { type ExplainedName, explainedNames, explainedTables } from '../../store/row-states.ts';
import type { Row } from '../../store/tables.ts';
import { viewOfRow } from './data.ts';
import { type EventActor, eventRow } from './event-row.ts';
import { type EventType, eventTypeNames, eventTypes } from './types.ts';

/** All types to which a tenant's enabled webhooks subscribe. */
export type SubscribedTypes = ReadonlySet<EventType>;

export interface Subscriptions {
  /** The cached types; `undefined` if they must be read. */
  known(tenant: TenantId): SubscribedTypes | undefined;
  read(tenant: TenantId): Promise<SubscribedTypes>;
}

export interface EventTools {
  readonly tenants: Pick<Tenants, 'find'>;
  readonly subscriptions: Subscriptions;
  readonly random: Random;
}

/** For a tenant without webhooks, each commit costs one extra lookup. */
export function derivingEvents({ tenants, subscriptions, random }: EventTools): CommitStep {
  const newEventId = createTimedUuids(random);

  function hasNoSubscriber({ entries }: Change): boolean {
    let before: TenantId | undefined;
    for (const { tenant_id: id } of entries) {
      if (id !== before && subscriptions.known(id)?.size !== 0) return false;
      before = id;
    }
    return true;
  }

  async function withEvents(change: Change): Promise<Change> {
    const events: Row<'events'>[] = [];
    for (const id of tenantsOf(change)) {
      const types = subscriptions.known(id) ?? (await subscriptions.read(id));
      if (types.size === 0) continue;
      const tenant = await tenants.find(id);
      if (tenant) events.push(...(await eventsOf(tenant, { change, types })));
    }
    return events.length === 0 ? change : { ...change, insert: { ...change.insert, events } };
  }

  async function eventsOf(
    tenant: Tenant,
    { change, types }: SubscribedChange,
  ): Promise<Row<'events'>[]> {
    const written = rowsOf(change);
    const derived = change.entries.flatMap((entry) => {
      if (entry.tenant_id !== tenant.id) return [];
      const type = typeOf(entry, written);
      return type !== undefined && types.has(type) ? [{ type, entry }] : [];
    });
    // An expired token makes room for another with its id.
    const inOrder = derived.toSorted((one, other) => rankOf(one.type) - rankOf(other.type));
    // An import creates one event per line.
    const pause = createPause();
    const rows: Row<'events'>[] = [];
    for (const { type, entry } of inOrder) {
      await pause();
      rows.push(rowOf(tenant, type, { entry, written, loop: change.loop }));
    }
    return rows;
  }

  function rowOf(
    tenant: Tenant,
    type: EventType,
    {
      entry,
      written,
      loop,
    }: Omit<EventCause, 'tenant'> & { readonly loop: Change['loop'] | undefined },
  ): Row<'events'> {
    const { entity_id, created_at } = entry;
    const event_id = newEventId<EventId>(created_at);
    const actor = actorOf(entry);
    const data = dataOf(type, { entry, written, tenant });
    const body = {
      data,
      ...(actor && { actor }),
      trace_id: traceOf(entry),
      ...(loop !== undefined && { loop }),
    };
    const event = eventRow(tenant, { event_id, type, entity_id, created_at, body }, random);
    return { ...event, charged_to: chargedFor(type, written.find(entry)) };
  }

  return {
    // Nearly every commit passes here, even that of a read: without webhooks it must not allocate anything.
    prepare: (change) => (hasNoSubscriber(change) ? change : withEvents(change)),
  };
}

interface SubscribedChange {
  readonly change: Change;
  readonly types: SubscribedTypes;
}

function tenantsOf({ entries }: Change): ReadonlySet<TenantId> {
  return new Set(entries.map(({ tenant_id }) => tenant_id));
}

const typesByEntry: ReadonlyMap<string, EventType> = new Map(
  eventTypeNames.map((name) => [`${eventTypes[name].entity} ${eventTypes[name].operation}`, name]),
);

/** Signing requires the keys of the tenant, so the end of a tenant can never be announced by an event. */
const unsendable: ReadonlySet<EventType> = new Set(['tenant.deleted']);

/** The type of the event for an entry; `undefined` if there is none. */
function typeOf(entry: LogEntry, written: WrittenRows): EventType | undefined {
  const { entity_type, operation, result, event } = entry;
  // A failed operation raises an event only if its type declares what the event may contain.
  if (result !== 'success' && event === undefined) return undefined;
  const isOfPart = operation === 'expire' && written.replaced(entry) !== undefined;
  const type = typesByEntry.get(`${entity_type} ${operation}${isOfPart ? ' property' : ''}`);
  return type === undefined || unsendable.has(type) ? undefined : type;
}

function rankOf(type: EventType): number {
  return type === 'token.expired' ? 0 : 1;
}

interface EventCause {
  readonly entry: LogEntry;
  readonly written: WrittenRows;
  readonly tenant: Tenant;
}

function dataOf(type: EventType, { entry, written, tenant }: EventCause): JsonObject {
  const { entity } = eventTypes[type];
  const { [entity]: said, ...others } = entry.event ?? {};
  const row = showsRow.has(type) ? written.find(entry) : undefined;
  const own = {
    id: entry.entity_id,
    ...(row && viewOfRow(row.table, row.row, tenant)),
    ...(said as JsonObject | undefined),
    ...(type === 'token.property.expired' && { property_name: 'cvc' }),
  };
  return { [entity]: own, ...others };
}

/** Types whose events show the entity in its current state. */
const showsRow: ReadonlySet<EventType> = new Set(
  eventTypeNames.filter((name) => /\.(?:created|updated|authorized)$/.test(name)),
);

/**
 * The application that pays for an event that shows what it has made or changed: a visitor could fill the disk with
 * them. Other events are about as large as their entry in the log.
 */
function chargedFor(type: EventType, written: WrittenRow | undefined): ApplicationId | null {
  if (written === undefined || !showsRow.has(type)) return null;
  const payer = payers[written.table];
  return payer?.(written.row) ?? null;
}

const makerOrChanger = (row: Pick<Row<'tokens'>, 'created_by' | 'modified_by'>) =>
  row.modified_by ?? row.created_by;

/** Of the tables whose rows count as stored bytes. */
const payers: { readonly [T in ExplainedName]?: (row: never) => ApplicationId } = {
  tokens: makerOrChanger,
  token_intents: ({ created_by }: Row<'token_intents'>) => created_by,
  sessions: ({ application_id }: Row<'sessions'>) => application_id,
};

const actorTypes: Readonly<Record<string, string>> = {
  application: 'application',
  session: 'session',
  operator: 'admin',
  system: 'system',
};

function actorOf({ actor_id, actor_type }: LogEntry): EventActor | undefined {
  const type = actorTypes[actor_type];
  return type === undefined ? undefined : { ...(actor_id !== null && { id: actor_id }), type };
}

/** The trace id without the mark of an import, which follows a space. */
function traceOf({ trace_id }: LogEntry): string | null {
  return trace_id?.split(' ', 1)[0] ?? null;
}

interface WrittenRow {
  readonly table: ExplainedName;
  readonly row: never;
}

/** The rows of a change, found by the entries about them. */
interface WrittenRows {
  find(entry: LogEntry): WrittenRow | undefined;
  replaced(entry: LogEntry): WrittenRow | undefined;
}

const tableOfEntity: ReadonlyMap<string, ExplainedName> = new Map(
  explainedNames.map((table) => [explainedTables[table].entity, table]),
);

function rowsOf({ insert, replace }: Change): WrittenRows {
  const inserted = finderIn(insert);
  const replaced = finderIn(replace);
  return { replaced, find: (entry) => replaced(entry) ?? inserted(entry) };
}

/** Finds rows by their ids. The index is built at the first lookup. */
function finderIn(rowsByTable: object | undefined): (entry: LogEntry) => WrittenRow | undefined {
  const byId = new Map<ExplainedName, ReadonlyMap<unknown, unknown>>();
  return ({ entity_type, entity_id }) => {
    const table = tableOfEntity.get(entity_type);
    const rows = table && (rowsByTable as ChangedRows | undefined)?.[table];
    if (table === undefined || rows === undefined) return undefined;
    const [only] = rows;
    if (only && rows.length === 1) {
      return only[explainedTables[table].id] === entity_id
        ? { table, row: only as never }
        : undefined;
    }
    const known =
      byId.get(table) ?? new Map(rows.map((row) => [row[explainedTables[table].id], row]));
    byId.set(table, known);
    const row = known.get(entity_id);
    return row === undefined ? undefined : { table, row: row as never };
  };
}
