/**
 * Resources that callers create, read, list, replace, patch and remove. The operations are the same for all of them. A
 * resource is a value that says only what is special about it.
 */
import type { Clock, Instant } from '../base/clock.ts';
import { formatTimestamp } from '../base/dates.ts';
import { VaultError } from '../base/errors.ts';
import {
  type ApplicationId,
  type ProxyId,
  parseUuid,
  type ReactorId,
  type TenantId,
} from '../base/ids.ts';
import type { Json, JsonObject } from '../base/json.ts';
import { mergePatch } from '../base/merge-patch.ts';
import type { Change } from '../store/change.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import { explainedTables } from '../store/row-states.ts';
import type { Query, Store } from '../store/store.ts';
import type { RowFromStore, Unproven } from '../store/stored-row.ts';
import type { Key, Row } from '../store/tables.ts';
import { nameOf } from './bound-row.ts';
import { type Caller, payerOf } from './caller.ts';
import { tagOf } from './entity-tag.ts';
import { alteredEntries, entryOf } from './log-entries.ts';
import { offsetPage, type PageBounds, type PageQuery } from './offset-page.ts';
import type { CompletedOperation, Decide, Refused } from './operation.ts';
import { ifProven, provenRows, requireProven } from './proven-row.ts';
import type { Reply } from './reply.ts';
import type { Tenant } from './tenant.ts';

/** The tables of such resources. */
export type ResourceTable =
  | 'applications'
  | 'approvals'
  | 'client_keys'
  | 'people'
  | 'proxies'
  | 'reactors'
  | 'webhooks';

/** What a resource needs so that one can be read and removed. */
export interface StoredResource<T extends ResourceTable> {
  readonly store: Store;
  readonly clock: Clock;
  readonly table: T;
  /** Of all of them, such as `/reactors`. */
  readonly path: string;
  /** When a row ends by itself. From then on it is not found. */
  expiryOf?(row: Row<T>): Instant;
  /**
   * As much as the caller may see.
   * @param operation for which it is shown.
   * @throws VaultError `integrity` when what belongs to the row was altered.
   */
  show(caller: Caller, row: Row<T>, operation: 'read' | 'update'): object | Promise<object>;
  /** What goes with the row when it is removed, apart from rows of tables that its own table owns. */
  removal?(caller: Caller, row: Unproven<T>, now: Instant): RelatedChange | Promise<RelatedChange>;
}

/** As a change inserts, replaces or removes them. */
type RowsOfTable = NonNullable<Change['insert']> &
  NonNullable<Change['replace']> &
  NonNullable<Change['remove']>;

/** What a change does next to the row of the resource and the entry about it. */
export interface RelatedChange extends Pick<Change, 'insert' | 'remove'> {
  readonly entries?: readonly LogEntry[];
}

/**
 * The row of that id, which may have been altered: for removing it.
 * @throws VaultError `not_found`, also for a row of another tenant.
 */
async function unprovenRow<T extends ResourceTable>(
  store: Pick<Store, 'get'>,
  table: T,
  { tenant, id }: RowId,
): Promise<Unproven<T>> {
  const column = explainedTables[table].id;
  const parsed = parseUuid(id);
  const key = { tenant_id: tenant.id, [column]: parsed } as unknown as Key<T>;
  const row = parsed && ((await store.get(table, key)) as Unproven<T> | undefined);
  if (row !== undefined) return row;
  throw notFound(table);
}

export interface RowId {
  readonly tenant: Tenant;
  readonly id: string;
}

/**
 * The row of that id, as the vault wrote it.
 * @throws VaultError `not_found`, also for a row of another tenant; `integrity` when it was altered.
 */
export async function rowOf<T extends ResourceTable>(
  store: Pick<Store, 'get'>,
  table: T,
  which: RowId,
): Promise<Row<T>> {
  const row = await unprovenRow(store, table, which);
  return requireProven(which.tenant, table, row as RowFromStore<T>);
}

function notFound(table: ResourceTable): VaultError {
  const { entity } = explainedTables[table];
  return new VaultError('not_found', { public: `There is no ${entity} with this id.` });
}

/** {@link rowOf} of a resource, for which an expired row is not found either. */
async function currentRow<T extends ResourceTable>(
  { store, clock, table, expiryOf }: StoredResource<T>,
  which: RowId,
): Promise<Row<T>> {
  const row = await rowOf(store, table, which);
  if (expiryOf && expiryOf(row) <= clock.now()) throw notFound(table);
  return row;
}

type NounOf<T extends ShownTable> = (typeof explainedTables)[T]['entity'];

/** The row as entries of the log call it. */
function named<T extends ResourceTable>(table: T, row: Row<T> | Unproven<T>) {
  const { id } = nameOf(table, row);
  return { entity: explainedTables[table].entity as NounOf<ResourceTable>, id };
}

function inTable<T extends ResourceTable>(table: T, row: Row<T> | Unproven<T>): RowsOfTable {
  return { [table]: [row] };
}

interface EditHistory {
  readonly created_by?: string | null;
  readonly created_at: Instant;
  readonly modified_by?: string | null;
  readonly modified_at?: Instant | null;
}

/** By whom and when it was created and changed, as callers see it. */
export function viewHistory(row: EditHistory): JsonObject {
  const { created_by = null, created_at, modified_by = null, modified_at = null } = row;
  return {
    ...(created_by !== null && { created_by }),
    created_at: formatTimestamp(created_at),
    ...(modified_by !== null && { modified_by }),
    ...(modified_at !== null && { modified_at: formatTimestamp(modified_at) }),
  };
}

/** From the decision `not_found`, or `integrity` when the row was altered. */
export function read<T extends ResourceTable>(
  resource: StoredResource<T>,
  caller: Caller,
  id: string,
): Decide {
  const { clock, table } = resource;
  return async () => {
    const row = await currentRow(resource, { tenant: caller.tenant, id });
    const fact = { ...named(table, row), operation: 'read' } as const;
    return {
      change: { entries: [entryOf(caller, clock.now(), fact)] },
      reply: {
        status: 200,
        etag: tagOf(table, row),
        body: await resource.show(caller, row, 'read'),
      },
      before: () => tagOf(table, row),
    };
  };
}

/** From the decision `not_found`. A row that was altered can be removed as well. */
export function remove<T extends ResourceTable>(
  resource: StoredResource<T>,
  caller: Caller,
  id: string,
): Decide {
  const { store, clock, table, expiryOf } = resource;
  const { tenant } = caller;
  return async () => {
    const row = await unprovenRow(store, table, { tenant, id });
    const now = clock.now();
    const proven = expiryOf && ifProven(tenant, table, row as RowFromStore<T>);
    if (proven && expiryOf(proven) <= now) throw notFound(table);
    const fact = { ...named(table, row), operation: 'delete' } as const;
    const { entries = [], ...related } = (await resource.removal?.(caller, row, now)) ?? {};
    return {
      change: {
        ...related,
        remove: { ...inTable(table, row), ...related.remove },
        entries: [entryOf(caller, now, fact), ...entries],
      },
      reply: { status: 204 },
      before: () => tagOf(table, row),
    };
  };
}

/** What every list needs. */
export interface ListTools {
  readonly clock: Clock;
}

export interface ListedRows<T extends ShownTable> {
  readonly table: T;
  readonly found: readonly RowFromStore<T>[];
  /** @throws VaultError `integrity` when what belongs to the row was altered. */
  show(row: Row<T>): object | Promise<object>;
}

type ShownTable = ResourceTable | 'sessions' | 'console_sessions' | 'sign_in_methods';

type ListEntries = readonly [LogEntry, ...LogEntry[]];

/**
 * A list of resources and its entries. What was altered outside the vault is left out, and an entry records that it
 * was altered: one row never hides the others.
 */
export async function listed<T extends ShownTable>(
  { clock }: ListTools,
  caller: Caller,
  { table, found, show }: ListedRows<T>,
): Promise<{ readonly data: readonly object[]; readonly entries: ListEntries }> {
  const { tenant } = caller;
  const { rows, altered } = provenRows(tenant, table, found);
  const shown = await Promise.all(
    rows.map((row) => tenant.quarantine.fetch(async () => show(row))),
  );
  const unshown = rows.filter((_, at) => shown[at] === undefined);
  const now = clock.now();
  const { entity } = explainedTables[table] as { readonly entity: NounOf<ShownTable> };
  const names = [...altered, ...unshown.map((row) => nameOf(table, row as RowFromStore<T>))];
  return {
    data: shown.filter((one) => one !== undefined),
    entries: [
      entryOf(caller, now, { entity, id: tenant.id, operation: 'list' }),
      ...alteredEntries(caller, now, names, 'list'),
    ],
  };
}

/** A resource whose list has pages, and can be filtered by id and name. */
export interface NamedResource<T extends ResourceTable, Id> extends StoredResource<T>, ListTools {
  count(filter: NamedFilter<Id>): Query<{ readonly count: number }>;
  page(filter: NamedFilter<Id> & PageBounds<Id>): Query<Unproven<T>>;
}

interface NamedFilter<Id> {
  readonly tenant: TenantId;
  readonly ids: readonly Id[] | undefined;
  readonly name: string | undefined;
}

export interface NamedQuery extends PageQuery {
  readonly id?: readonly string[];
  /** `*` stands for any characters; the case of letters does not matter. */
  readonly name?: string;
}

/**
 * Newest first. A row that was altered outside the vault is left out, and an entry records that it was altered.
 * @throws VaultError `validation_failed` for an invalid cursor.
 */
export function list<T extends 'proxies' | 'reactors', Id extends ProxyId | ReactorId>(
  resource: NamedResource<T, Id>,
  caller: Caller,
  query: NamedQuery,
): Decide {
  const { store, table, path } = resource;
  const { tenant } = caller;
  const ids = query.id?.flatMap((id) => parseUuid<Id>(id) ?? []);
  const filter = { tenant: tenant.id, ids, name: query.name };
  const readPage = offsetPage({ ...resource, route: `GET ${path}` }, tenant, { filter, query });
  return async () => {
    const { rows, pagination } = await readPage(store, payerOf(caller));
    const { data, entries } = await listed(resource, caller, {
      table,
      found: rows as readonly RowFromStore<T>[],
      show: (row) => resource.show(caller, row, 'read'),
    });
    return { change: { entries }, reply: { status: 200, body: { pagination, data } } };
  };
}

/** A resource that callers create. @template Opened what a row holds, where it can be changed. */
export interface CreatedResource<T extends ResourceTable, Request, Settings, Opened = never>
  extends StoredResource<T> {
  /** @throws VaultError `validation_failed` naming every attribute that is wrong. */
  parse(request: Request): Settings;
  /**
   * The refusal of a caller that may not store these settings.
   * @param attempt whose id is `*` for a creation, which has nothing before.
   * @throws VaultError for settings that contradict what is stored.
   */
  check?(
    caller: Caller,
    attempt: { readonly id: string; readonly operation: 'create' | 'update' },
    proposal: { readonly settings: Settings; readonly before?: Opened },
  ): Promise<Refused | undefined>;
  /** @throws VaultError `unprocessable` where the tenant has as many as it may. */
  requireRoom?(tenant: Tenant): Promise<void>;
  /** A new row, and what the response to its creation shows. */
  make(caller: Caller, columns: NewColumns, settings: Settings): Promise<NewResource<T>>;
}

type NewColumns = ReturnType<typeof newColumns>;

/** The columns that new rows of all resources have. */
function newColumns({ tenant, application }: Caller, now: Instant) {
  const { id: tenant_id } = tenant;
  const created = { created_by: application, created_at: now };
  return { tenant_id, version: 1, ...created, modified_by: null, modified_at: null };
}

interface NewResource<T extends ResourceTable> extends RelatedChange {
  readonly row: Row<T>;
  readonly reply: Pick<Reply, 'body' | 'narrower'>;
}

/**
 * From the decision what the resource's `check`, `requireRoom` and `make` refuse.
 * @throws VaultError `validation_failed` naming every attribute that is wrong.
 */
export function create<T extends ResourceTable, Request, Settings, Opened>(
  resource: CreatedResource<T, Request, Settings, Opened>,
  caller: Caller,
  request: Request,
): Decide {
  const { clock, table, path } = resource;
  const settings = resource.parse(request);
  return async () => {
    const attempt = { id: '*', operation: 'create' } as const;
    const refused = await resource.check?.(caller, attempt, { settings });
    if (refused) return refused;
    await resource.requireRoom?.(caller.tenant);
    const now = clock.now();
    const made = await resource.make(caller, newColumns(caller, now), settings);
    const { row, reply, entries = [], ...related } = made;
    const name = named(table, row);
    return {
      change: {
        ...related,
        insert: { ...inTable(table, row), ...related.insert },
        entries: [entryOf(caller, now, { ...name, operation: 'create' }), ...entries],
      },
      reply: {
        status: 201,
        location: `${path}/${name.id}`,
        etag: tagOf(table, row),
        ...reply,
      },
    };
  };
}

/** A resource that callers replace. */
export interface ReplacedResource<T extends ReplacedTable, Request, Settings, Opened>
  extends CreatedResource<T, Request, Settings, Opened> {
  /** @throws VaultError `integrity` when what is sealed in the row was altered. */
  open(caller: Caller, row: Row<T>): Opened;
  /**
   * The row with other settings.
   * @param next the row as it was, in its next version.
   */
  revise(
    caller: Caller,
    next: Row<T>,
    proposal: { readonly settings: Settings; readonly before: Opened },
  ): Promise<Omit<RelatedChange, 'entries'> & { readonly row: Row<T> }>;
}

type ReplacedTable = Exclude<ResourceTable, 'approvals' | 'client_keys' | 'people'>;

interface ReplacedRow {
  readonly version: number;
  readonly modified_by: ApplicationId | null;
  readonly modified_at: Instant | null;
}

/**
 * What the request does not give is as it would be in a new one. From the decision `not_found`, `integrity` when the
 * row was altered, or what the resource's `check` and `revise` refuse.
 * @throws VaultError `validation_failed` naming every attribute that is wrong.
 */
export function replace<T extends ReplacedTable, Request, Settings, Opened>(
  resource: ReplacedResource<T, Request, Settings, Opened>,
  caller: Caller,
  { id, request }: { readonly id: string; readonly request: Request },
): Decide {
  const settings = resource.parse(request);
  return async () => {
    const revised = await revision(resource, caller, { id, settingsOf: () => settings });
    if ('refusal' in revised) return revised;
    const { change, row, before, etag } = revised;
    const body = await resource.show(caller, row, 'update');
    return { change, reply: { status: 200, etag, body }, before };
  };
}

/** A resource that callers also change by JSON merge patch. */
export interface PatchedResource<T extends ReplacedTable, Request, Settings, Opened>
  extends ReplacedResource<T, Request, Settings, Opened> {
  /** @throws VaultError `validation_failed` naming every attribute that is wrong. */
  patched(row: Row<T>, before: Opened, patch: Patch<Request>): Settings;
}

export type Patch<Request> = { readonly [A in keyof Request]?: Request[A] | null };

/**
 * RFC 7386: null removes, objects are merged member by member, and lists are replaced. The wire schema of a patch lets
 * through only what that of the request does, so what they come to is a request.
 */
export function merged<Request>(request: Request, patch: Patch<Request>): Request {
  return mergePatch(request as Json, patch as Json) as Request;
}

/** From the decision what {@link replace} is refused with, and `validation_failed` for what the patch leads to. */
export function patch<T extends ReplacedTable, Request, Settings, Opened>(
  resource: PatchedResource<T, Request, Settings, Opened>,
  caller: Caller,
  { id, patch }: { readonly id: string; readonly patch: Patch<Request> },
): Decide {
  return async () => {
    const settingsOf = (row: Row<T>, before: Opened) => resource.patched(row, before, patch);
    const revised = await revision(resource, caller, { id, settingsOf });
    if ('refusal' in revised) return revised;
    const { change, before, etag } = revised;
    return { change, reply: { status: 204, etag }, before };
  };
}

interface Revising<T extends ReplacedTable, Settings, Opened> {
  readonly id: string;
  readonly settingsOf: (row: Row<T>, before: Opened) => Settings;
}

interface Revision<T extends ReplacedTable>
  extends Pick<Required<CompletedOperation>, 'change' | 'before'> {
  readonly row: Row<T>;
  readonly etag: string;
}

async function revision<T extends ReplacedTable, Request, Settings, Opened>(
  resource: ReplacedResource<T, Request, Settings, Opened>,
  caller: Caller,
  { id, settingsOf }: Revising<T, Settings, Opened>,
): Promise<Refused | Revision<T>> {
  const { table } = resource;
  const { tenant } = caller;
  const found = await currentRow(resource, { tenant, id });
  const before = resource.open(caller, found);
  const settings = settingsOf(found, before);
  const name = named(table, found) as {
    readonly entity: NounOf<ReplacedTable>;
    readonly id: string;
  };
  const attempt = { id: name.id, operation: 'update' } as const;
  const refused = await resource.check?.(caller, attempt, { settings, before });
  if (refused) return refused;
  const now = resource.clock.now();
  const next = nextVersion(caller, found as ReplacedRow & Row<T>, now);
  const { row, ...related } = await resource.revise(caller, next, { settings, before });
  const entry = entryOf(caller, now, { ...name, operation: 'update' });
  return {
    change: { ...related, replace: inTable(table, row), entries: [entry] },
    row,
    etag: tagOf(table, row),
    before: () => tagOf(table, found),
  };
}

/** The row as it is written again. Its version is raised, so that concurrent changes collide. */
export function nextVersion<R extends ReplacedRow>(caller: Caller, row: R, now: Instant): R {
  const modified = { modified_by: caller.application, modified_at: now };
  return { ...row, version: row.version + 1, ...modified };
}
