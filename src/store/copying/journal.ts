/**
 * The journal of a vault that is copied while servers run: triggers note the key of each row that is written, in the
 * transaction that writes it. No server has to know of the copy, and no change can be missed, whoever makes it. The
 * last triggers refuse every write, once the vault was moved.
 */
import type { TenantId } from '../../base/ids.ts';
import type { ColumnKind } from '../columns.ts';
import {
  journalPrefix,
  movedCode,
  movedTenantCode,
  movedTexts,
  notePrefix,
  outgoingCopy,
  refusalPrefix,
} from '../outgoing-copy.ts';
import { tenantNumber } from '../stored-form.ts';
import { kindOf, type SqlValue, shapes, type Table } from '../tables.ts';
import type { CopyDatabase, StoredValues } from './copy-database.ts';

type Types = CopyDatabase['types'];

const journalOf = (table: Table) => `${journalPrefix}${table}`;
const noteOf = (table: Table, action: string) => `${notePrefix}${table}_${action}`;
const refusal = `${refusalPrefix}moved`;
const refusalOf = (table: Table, action: string) => `${refusal}_${table}_${action}`;
const tenantRefusal = `${refusalPrefix}tenant`;

interface RefusedAction {
  readonly table: Table;
  readonly action: (typeof actions)[number];
  readonly tenant: TenantId;
}

/** On SQLite no two tables have triggers of one name. PostgreSQL cuts a name after 63 characters. */
function tenantRefusalOf(engine: Types['engine'], { table, action, tenant }: RefusedAction) {
  const name = `${tenantRefusal}_${tenant.replaceAll('-', '')}_${action}`;
  return engine === 'sqlite' ? `${name}_${table}` : name;
}

const actions = ['insert', 'update', 'delete'] as const;

/** The tables whose rows are noted, and whose: of all tenants unless one is named. */
export interface Journaled {
  readonly tables: readonly Table[];
  readonly tenant: TenantId | undefined;
}

/** Creates the journal of each table. From the commit on every change is noted. */
export function journalStatements(types: Types, journaled: Journaled): readonly string[] {
  return journaled.tables.flatMap((table) => [
    `create table ${journalOf(table)} (note ${numberType(types)}, ${shapes[table].key
      .map((name) => `${name} ${columnType(types, kindOf(table, name))} not null`)
      .join(', ')})`,
    ...(types.engine === 'sqlite'
      ? notesOnSqlite(table, journaled)
      : notesOnPostgres(table, journaled)),
  ]);
}

function numberType({ engine }: Types): string {
  return engine === 'sqlite'
    ? 'integer primary key'
    : 'bigint generated always as identity primary key';
}

function columnType(types: Types, kind: ColumnKind): string {
  if (kind === 'tenant') return types.tenant;
  if (kind === 'id' || kind === 'digest') return types.bytes;
  return types[kind];
}

/** The key of the row, under whichever name a trigger has it. */
const keyIn = (table: Table, row: 'new' | 'old') =>
  shapes[table].key.map((name) => `${row}.${name}`).join(', ');

function ofTenant(table: Table, { tenant }: Pick<Journaled, 'tenant'>, row: 'new' | 'old'): string {
  if (tenant === undefined) return 'true';
  const kind = kindOf(table, 'tenant_id');
  return `${row}.tenant_id = ${kind === 'tenant' ? tenantNumber(tenant) : `'${tenant}'`}`;
}

function noting(table: Table, journaled: Journaled, row: 'new' | 'old'): string {
  return `insert into ${journalOf(table)} (${shapes[table].key.join(', ')})
    select ${keyIn(table, row)} where ${ofTenant(table, journaled, row)}`;
}

/** A write that gives a row another key concerns both. */
const hasOtherKey = (table: Table) =>
  `(${keyIn(table, 'old')}) is distinct from (${keyIn(table, 'new')})`;

function notesOnSqlite(table: Table, journaled: Journaled): readonly string[] {
  const old = noting(table, journaled, 'old');
  const notes = {
    insert: [noting(table, journaled, 'new')],
    update: [noting(table, journaled, 'new'), `${old} and ${hasOtherKey(table)}`],
    delete: [old],
  };
  return actions.map(
    (action) => `create trigger ${noteOf(table, action)} after ${action} on ${table} begin
      ${notes[action].join('; ')}; end`,
  );
}

function notesOnPostgres(table: Table, journaled: Journaled): readonly string[] {
  const name = noteOf(table, 'write');
  return [
    `create function ${name}() returns trigger language plpgsql as $fn$ begin
      if tg_op = 'INSERT' then ${noting(table, journaled, 'new')};
      elsif tg_op = 'DELETE' then ${noting(table, journaled, 'old')};
      else
        ${noting(table, journaled, 'new')};
        ${noting(table, journaled, 'old')} and ${hasOtherKey(table)};
      end if;
      return null;
    end $fn$`,
    `create trigger ${name} after insert or update or delete on ${table}
      for each row execute function ${name}()`,
  ];
}

/** Removes what {@link journalStatements} made. */
export function withoutJournal({ engine }: Pick<Types, 'engine'>): readonly string[] {
  return (Object.keys(shapes) as Table[]).flatMap((table) => [
    ...(engine === 'sqlite'
      ? actions.map((action) => `drop trigger if exists ${noteOf(table, action)}`)
      : [`drop function if exists ${noteOf(table, 'write')}() cascade`]),
    `drop table if exists ${journalOf(table)}`,
  ]);
}

/** The message of a refused write, as an expression. */
const movedText = `(select case when opened_at is null then '${movedTexts.unopened}'
  else '${movedTexts.opened}' end from ${outgoingCopy} where tenant is null)`;

/** From the commit on every write to what is copied fails with one of {@link movedTexts}. */
export function refusalStatements(
  { engine }: Pick<Types, 'engine'>,
  { tables, tenant }: Journaled,
): readonly string[] {
  if (tenant !== undefined) return tenantRefusals(engine, tables, tenant);
  if (engine === 'sqlite') {
    return tables.flatMap((table) =>
      actions.map(
        (action) => `create trigger ${refusalOf(table, action)} before ${action} on ${table}
          begin select raise(abort, ${movedText}); end`,
      ),
    );
  }
  // A statement fails also where it writes no row, as the probe of a server does.
  return [
    `create or replace function ${refusal}() returns trigger language plpgsql as $fn$ begin
      raise exception using errcode = '${movedCode}', message = ${movedText};
    end $fn$`,
    ...tables.map(
      (table) => `create trigger ${refusal} before insert or update or delete on ${table}
        for each statement execute function ${refusal}()`,
    ),
  ];
}

function tenantRefusals(
  engine: Types['engine'],
  tables: readonly Table[],
  tenant: TenantId,
): readonly string[] {
  const triggers = tables.flatMap((table) =>
    actions.map((action) => {
      const name = tenantRefusalOf(engine, { table, action, tenant });
      const condition = ofTenant(table, { tenant }, action === 'insert' ? 'new' : 'old');
      return engine === 'sqlite'
        ? `create trigger ${name} before ${action} on ${table} when ${condition}
            begin select raise(abort, '${movedTexts.tenant}'); end`
        : `create trigger ${name} before ${action} on ${table} for each row when (${condition})
            execute function ${tenantRefusal}()`;
    }),
  );
  if (engine === 'sqlite') return triggers;
  return [
    `create or replace function ${tenantRefusal}() returns trigger language plpgsql as $fn$ begin
      raise exception using errcode = '${movedTenantCode}', message = '${movedTexts.tenant}';
    end $fn$`,
    ...triggers,
  ];
}

/** Writes to the tenant succeed again. */
export function withoutTenantRefusals(
  { engine }: Pick<Types, 'engine'>,
  tables: readonly Table[],
  tenant: TenantId,
): readonly string[] {
  return tables.flatMap((table) =>
    actions.map((action) => {
      const name = tenantRefusalOf(engine, { table, action, tenant });
      return `drop trigger if exists ${name}${engine === 'sqlite' ? '' : ` on ${table}`}`;
    }),
  );
}

interface NotesPage {
  /** Notes after this one. */
  readonly after: SqlValue;
  readonly limit: number;
}

/** The next notes of a table: the number of each, and then the key of the row. */
export function readNotes(
  database: CopyDatabase,
  table: Table,
  { after, limit }: NotesPage,
): Promise<readonly StoredValues[]> {
  const columns = ['note', ...shapes[table].key].join(', ');
  const text = `select ${columns} from ${journalOf(table)} where note > ?1 order by note limit ${limit}`;
  return database.rows(text, [after]);
}

/** Removes the notes up to that one or, without one, those that the transaction sees. */
export async function removeNotes(
  database: CopyDatabase,
  table: Table,
  upTo?: SqlValue,
): Promise<void> {
  if (upTo === undefined) await database.rows(`delete from ${journalOf(table)}`);
  else await database.rows(`delete from ${journalOf(table)} where note <= ?1`, [upTo]);
}
