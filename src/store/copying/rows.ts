/** How rows come from one database to another: all of them once, in the order of their keys, and then what changed. */
import type { TenantId } from '../../base/ids.ts';
import { awayForGood } from '../outgoing-copy.ts';
import { RestoreError } from '../restore-error.ts';
import { tenantNumber } from '../stored-form.ts';
import { kindOf, type SqlValue, shapes, type Table } from '../tables.ts';
import {
  allTables,
  bytesOf,
  type CopyDatabase,
  keyOf,
  onSnapshot,
  parameters,
  type StoredValues,
  writing,
} from './copy-database.ts';
import { readNotes, removeNotes } from './journal.ts';
import type { CopyTarget } from './target.ts';

/** What is copied. */
export interface CopyScope {
  readonly tables: readonly Table[];
  /** Its rows alone; all rows unless one is named. */
  readonly tenant: TenantId | undefined;
}

/** One tenant with all that is its own. */
export interface TenantScope extends CopyScope {
  readonly tenant: TenantId;
}

/** Keys of the vault itself stay, and leases are of the servers that have them. */
const ofVault: readonly Table[] = ['vault_keys', 'leases'];

export function scopeOf(tenant: TenantId): TenantScope {
  return { tables: allTables.filter((table) => !ofVault.includes(table)), tenant };
}

/** From where to where. */
export interface RowCopying extends CopyScope {
  readonly source: CopyDatabase;
  readonly target: CopyTarget;
}

/** Rows that are read at a time: fewer where they are large, because a token may have a megabyte. */
const pageRows = { first: 50, most: 1_000 } as const;
const pageBytes = 2 * 2 ** 20;

/** Events wait in the order of a column that no shape has; see {@link orderWaitingEvents}. */
const ordered: Table = 'events';

/** The columns that are copied, those of the shape first. */
function copiedColumns(table: Table, { target }: Pick<RowCopying, 'target'>): readonly string[] {
  const { columns } = shapes[table];
  const hasOrder = table === ordered && target.database.engine === 'postgres';
  return hasOrder ? [...columns, 'rowid'] : columns;
}

/**
 * As they are written to the target, where another vault serves a tenant that is being copied. Of both databases they
 * are read like this, so that rows can be compared.
 */
function selected({ tenant }: CopyScope, columns: readonly string[]): string {
  return columns
    .map((name) =>
      tenant !== undefined && name === 'away_until' ? `${awayForGood} as away_until` : name,
    )
    .join(', ');
}

interface Page {
  readonly after: StoredValues | undefined;
  readonly limit: number;
}

interface Selecting extends CopyScope {
  readonly source: CopyDatabase;
}

interface PageInScope extends Page {
  readonly table: Table;
  readonly columns: readonly string[];
}

/** The rows that come next in the order of the key. */
function pageOf(copying: Selecting, { table, columns, after, limit }: PageInScope) {
  const { source, tenant } = copying;
  const values: SqlValue[] = [];
  const conditions: string[] = [];
  let key: readonly string[] = shapes[table].key;
  let from = after;
  if (tenant !== undefined) {
    values.push(tenantValue(table, tenant));
    conditions.push('tenant_id = ?1');
    if (key[0] === 'tenant_id') {
      key = key.slice(1);
      from = after?.slice(1);
    }
  }
  if (from !== undefined && key.length > 0) {
    conditions.push(`(${key.join(', ')}) > (${parameters(key.length, values.length + 1)})`);
    values.push(...from);
  }
  const where = conditions.length > 0 ? `where ${conditions.join(' and ')}` : '';
  const order = [...shapes[table].key].join(', ');
  return source.rows(
    `select ${selected(copying, columns)} from ${table} ${where} order by ${order} limit ${limit}`,
    values,
  );
}

function tenantValue(table: Table, tenant: TenantId): SqlValue {
  return kindOf(table, 'tenant_id') === 'tenant' ? tenantNumber(tenant) : tenant;
}

/** All rows of a table in the scope, as of the transaction that the database is in, in constant memory. */
export async function* rowsInScope(
  scope: CopyScope,
  database: CopyDatabase,
  table: Table,
): AsyncIterable<readonly StoredValues[]> {
  const { columns } = shapes[table];
  if (scope.tenant === undefined) return yield* database.all(table, columns);
  let after: StoredValues | undefined;
  for (;;) {
    const limit = pageRows.most / 4;
    const page = await pageOf({ ...scope, source: database }, { table, columns, after, limit });
    yield page;
    const last = page.at(-1);
    if (last === undefined || page.length < limit) return;
    after = keyOf(table, last);
  }
}

/** Removes all rows of one tenant, that of the tenant last: until then no server serves it. */
export async function removeTenant(
  database: CopyDatabase,
  { tables, tenant }: TenantScope,
): Promise<number> {
  let removed = 0;
  for (const table of [...tables].reverse()) {
    const { key } = shapes[table];
    const text = `select ${key.join(', ')} from ${table} where tenant_id = ?1 limit ${pageRows.most}`;
    const removeSome = async () => {
      const keys = await database.rows(text, [tenantValue(table, tenant)]);
      await database.remove(table, keys);
      return keys.length;
    };
    for (;;) {
      const count = await writing(database, removeSome, { lasts: true });
      removed += count;
      if (count < pageRows.most) break;
    }
  }
  return removed;
}

/**
 * Copies all rows once, and goes on where an earlier walk ended. While servers write, what is copied is of many
 * moments: a row that was written since, and one that is in the way of another, is in the journal.
 * @param onRows is called with the number of rows that were copied so far, by all walks.
 */
export async function walkRows(copying: RowCopying, onRows: (rows: number) => void): Promise<void> {
  const { target } = copying;
  const copied = () => Object.values(target.state.tables).reduce((sum, { rows }) => sum + rows, 0);
  for (const table of copying.tables) {
    const progress = target.state.tables[table];
    if (progress?.isDone) continue;
    let { after, rows: count = 0 } = progress ?? {};
    let limit: number = pageRows.first;
    const columns = copiedColumns(table, copying);
    let page = await pageOf(copying, { table, columns, after, limit });
    while (page.length > 0) {
      const rows = page;
      const last = rows.at(-1);
      after = last && keyOf(table, last);
      count += rows.length;
      const isLast = rows.length < limit;
      limit = limitAfter(rows, limit);
      // The next rows are read while these are written.
      const next = isLast ? [] : pageOf(copying, { table, columns, after, limit });
      if (next instanceof Promise) next.catch(() => undefined);
      const reached = { after, rows: count, isDone: false };
      target.requireRoom();
      await writing(target.database, async () => {
        await target.database.insert(table, columns, rows);
        await target.saveTable(table, reached);
      });
      onRows(copied());
      page = await next;
    }
    const whole = { after, rows: count, isDone: true };
    await writing(target.database, () => target.saveTable(table, whole));
  }
}

function limitAfter(rows: readonly StoredValues[], limit: number): number {
  const bytes = rows.reduce((sum, row) => sum + bytesOf(row), 0);
  const fitting = Math.floor((pageBytes * rows.length) / Math.max(1, bytes));
  return Math.max(1, Math.min(2 * limit, fitting, pageRows.most));
}

/** The rows of a table that were there when it was copied are not those that are there now: it is copied again. */
export async function copyAgain(copying: RowCopying, table: Table): Promise<void> {
  const { target } = copying;
  await writing(target.database, async () => {
    await target.database.run(`delete from ${table}`);
    await target.saveTable(table, { after: undefined, rows: 0, isDone: false });
  });
  await walkRows({ ...copying, tables: [table] }, () => undefined);
}

/** Notes of the journal that are taken at a time. */
const notesAtOnce = 500;

/**
 * Makes the target what the source was at one moment, by the notes of the journal, after every row was copied once.
 * @param compare is called at that moment, with both databases as they were then.
 * @returns how many notes there were.
 */
export async function copyChanges(
  copying: RowCopying,
  compare: () => Promise<void> = async () => undefined,
): Promise<number> {
  const { source, target, tables } = copying;
  const taken = await onSnapshot(source, async () => {
    // A crash must not lose what the journal then no longer has.
    const lasts = await writing(target.database, () => applyNotes(copying), { lasts: true });
    await compare();
    // Of PostgreSQL these are exactly the notes that the snapshot has, whichever numbers others have.
    if (source.engine === 'postgres') for (const table of tables) await removeNotes(source, table);
    return lasts;
  });
  if (source.engine === 'sqlite') {
    for (const [table, { last }] of taken) await removeNotes(source, table, last);
  }
  return [...taken.values()].reduce((sum, { notes }) => sum + notes, 0);
}

interface TakenNotes {
  readonly notes: number;
  readonly last: SqlValue;
}

/**
 * In the transactions of both. All rows that have changed are removed before any is written, so that none is in the
 * way of another that has its unique value now.
 * @param check is called from time to time, and may throw.
 */
export async function applyNotes(
  copying: RowCopying,
  check: () => void = () => undefined,
): Promise<ReadonlyMap<Table, TakenNotes>> {
  const taken = new Map<Table, TakenNotes>();
  for (const table of copying.tables) {
    let notes = 0;
    let last: SqlValue = null;
    for await (const page of notesOf(copying, table)) {
      check();
      await copying.target.database.remove(table, page.keys);
      notes += page.keys.length;
      last = page.last;
    }
    if (notes > 0) taken.set(table, { notes, last });
  }
  for (const table of taken.keys()) {
    for await (const { keys } of notesOf(copying, table)) {
      check();
      await insertAgain(copying, table, keys);
    }
  }
  return taken;
}

async function* notesOf({ source }: RowCopying, table: Table) {
  let last: SqlValue = 0;
  for (;;) {
    const notes = await readNotes(source, table, { after: last, limit: notesAtOnce });
    if (notes.length === 0) return;
    last = notes.at(-1)?.[0] ?? last;
    yield { keys: distinct(notes.map(([, ...key]) => key)), last };
  }
}

function distinct(keys: readonly StoredValues[]): readonly StoredValues[] {
  return [...new Map(keys.map((key) => [textOf(key), key])).values()];
}

/** What is written is read again: nothing may have been in its way. */
async function insertAgain(
  copying: RowCopying,
  table: Table,
  keys: readonly StoredValues[],
): Promise<void> {
  const { source, target } = copying;
  // Few at a time, because each may be large.
  for (let at = 0; at < keys.length; at += pageRows.first) {
    const some = keys.slice(at, at + pageRows.first);
    const columns = copiedColumns(table, copying);
    const rows = await source.find(table, some, columns, selected(copying, columns));
    await target.database.insert(table, columns, rows);
    const written = await target.database.find(table, some, columns);
    requireSameRows(table, rows, written);
  }
}

function requireSameRows(
  table: Table,
  rows: readonly StoredValues[],
  written: readonly StoredValues[],
): void {
  const found = new Set(written.map(textOf));
  if (rows.length === written.length && rows.every((row) => found.has(textOf(row)))) return;
  throw new RestoreError(`Rows of the table ${table} could not be written as they are.`);
}

/** Each value with its length, so that no two lists have one text. */
function textOf(values: StoredValues): string {
  return values
    .map((value) => {
      const text = value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value);
      return `${value === null ? 'null' : ''}${text.length}:${text}`;
    })
    .join();
}

/**
 * The embedded database numbers rows as they are inserted, and dispatches events in that order: those that wait are
 * inserted again, in the order of the source.
 */
export async function orderWaitingEvents(copying: RowCopying): Promise<void> {
  const { source, target, tenant } = copying;
  if (target.database.engine === 'postgres') return;
  const { columns } = shapes[ordered];
  const ofTenant = tenant === undefined ? '' : 'and tenant_id = ?1';
  const select = (after: SqlValue[]) => {
    const own = tenant === undefined ? [] : [tenantValue(ordered, tenant)];
    const place = own.length + 1;
    // Several rows may have one number on PostgreSQL.
    const behind = after.length > 0 ? `and (rowid, event_id) > (?${place}, ?${place + 1})` : '';
    return source.rows(
      `select ${columns.join(', ')}, rowid from ${ordered} where sequence is null ${ofTenant} ${behind}
        order by rowid, event_id limit ${notesAtOnce}`,
      [...own, ...after],
    );
  };
  let after: SqlValue[] = [];
  for (;;) {
    const found = await select(after);
    if (found.length === 0) return;
    const rows = found.map((row) => row.slice(0, columns.length));
    await target.database.remove(
      ordered,
      rows.map((row) => keyOf(ordered, row)),
    );
    await target.database.insert(ordered, columns, rows);
    const last = found.at(-1) ?? [];
    after = [last.at(-1) ?? null, last[columns.indexOf('event_id')] ?? null];
  }
}
