/**
 * Migration 5: how many bytes each application has stored, counted in the transaction that writes the rows. On
 * PostgreSQL triggers count what a statement wrote; since migration 9 only that of an older server. The embedded
 * database has one writer, which counts by itself at a fraction of the cost: see `sqlite/byte-count.ts`.
 */

import type { ColumnTypes } from './column-types.ts';
import {
  type CountedName,
  type CountedOwner,
  ownerOnPostgres,
  ownerSql,
  sizeSql,
} from './stored-sizes.ts';

interface CountedRows {
  readonly table: CountedName;
  readonly owner: (row: string) => CountedOwner;
}

export function countings(isPostgres: boolean): readonly CountedRows[] {
  return (['tokens', 'token_intents', 'replies', 'sessions'] as const).map((table) => ({
    table,
    owner: (row) => (isPostgres ? ownerOnPostgres(table, row) : ownerOnSqlite(table, row)),
  }));
}

function ownerOnSqlite(table: CountedName, row: string): CountedOwner {
  if (table === 'sessions') return sessionOwnerOnSqlite(row);
  return { tenant: `${row}.tenant_id`, application: ownerSql(table, row) };
}

function sessionOwnerOnSqlite(row: string): CountedOwner {
  const digits = Array.from(
    { length: 8 },
    (_, place) =>
      `(instr('0123456789abcdef', substr(${row}.tenant_id, ${place + 1}, 1)) - 1 << ${28 - 4 * place})`,
  );
  const unsigned = digits.join(' + ');
  return {
    tenant: `(${unsigned}) - ((${unsigned}) >> 31 << 32)`,
    application: `unhex('01' || replace(${row}.application_id, '-', ''))`,
    isCounted: ['tenant_id', 'application_id']
      .map((column) => `length(unhex(replace(${row}.${column}, '-', ''))) = 16`)
      .join(' and '),
  };
}

export function storedBytes(types: ColumnTypes): string[] {
  const { integer, bytes, tenant, keptByKey } = types;
  const isPostgres = types.engine === 'postgres';
  const counted = countings(isPostgres);
  return [
    // Concurrent writers of PostgreSQL have slots of their own, so that they do not wait for one row.
    `create table stored_bytes (
      tenant_id ${tenant} not null,
      application_id ${bytes} not null,
      slot ${integer} not null,
      bytes ${integer} not null,
      constraint stored_bytes_key primary key (tenant_id, application_id, slot)
    ) ${keptByKey}`,
    // Of a response to a session, the application that created the session.
    `alter table replies add column charged_to ${bytes}`,
    ...(isPostgres ? onPostgres(counted) : []),
    countStored(counted),
  ];
}

/** Counts every row that is stored. */
export function countStored(counted: readonly CountedRows[]): string {
  return `insert into stored_bytes (tenant_id, application_id, slot, bytes)
      select tenant_id, application_id, 0, sum(bytes) from
      (${counted.map((one) => counting(one, one.table, one.table)).join(' union all ')}) as counted
      group by tenant_id, application_id`;
}

/** The bytes of rows with their owners. */
function counting({ table, owner }: CountedRows, source: string, row: string): string {
  const { tenant, application, isCounted } = owner(row);
  const condition = isCounted ? ` where ${isCounted}` : '';
  const columns = `${tenant} as tenant_id, ${application} as application_id, ${sizeSql(table, row)} as bytes`;
  return `select ${columns} from ${source}${condition}`;
}

/** Slots are many more than servers have connections that write. */
const slots = 256;

/** The beginning of a block that does one thing on a distributed database and another on others. */
export const findDistributed = `do $do$ declare distributed boolean := false; begin
      if to_regclass('pg_dist_partition') is not null then
        execute 'select exists (select 1 from pg_dist_partition where logicalrelid = to_regclass(''tokens''))'
          into distributed;
      end if;`;

/** What one statement writes is counted once, by owner. A distributed table takes no triggers. */
function onPostgres(counted: readonly CountedRows[]): string[] {
  return [
    checkOnPostgres,
    ...counted.map((one) => functionOnPostgres(one)),
    `${findDistributed}
      if distributed then return; end if;
      ${counted.flatMap(({ table }) => triggersOnPostgres(table)).join(';\n')};
    end $do$`,
  ];
}

/** @param before what the function does first. */
export function functionOnPostgres(one: CountedRows, before = ''): string {
  const come = counting(one, 'come', 'come');
  const gone = `select tenant_id, application_id, -bytes as bytes from (${counting(one, 'gone', 'gone')}) as before`;
  const count = (
    source: string,
  ) => `insert into stored_bytes as s (tenant_id, application_id, slot, bytes)
    select tenant_id, application_id, pg_backend_pid() % ${slots}, sum(bytes)::bigint from (${source}) as counted
    group by tenant_id, application_id having sum(bytes) <> 0 order by tenant_id, application_id
    on conflict (tenant_id, application_id, slot) do update set bytes = s.bytes + excluded.bytes`;
  return `create or replace function count_stored_bytes_of_${one.table}() returns trigger language plpgsql as $fn$
    begin
      ${before}if tg_op = 'INSERT' then ${count(come)}; perform check_stored_bytes();
      elsif tg_op = 'DELETE' then ${count(gone)};
      else
        ${count(`${come} union all ${gone}`)};
        if exists (select 1 from (${come} union all ${gone}) as counted
          group by tenant_id, application_id having sum(bytes) > 0) then perform check_stored_bytes(); end if;
      end if;
      return null;
    end $fn$`;
}

function triggersOnPostgres(table: string): string[] {
  const trigger = (action: string, tables: string) =>
    `create trigger stored_bytes_${table}_${action} after ${action} on ${table} referencing ${tables}
      for each statement execute function count_stored_bytes_of_${table}()`;
  return [
    trigger('insert', 'new table as come'),
    trigger('delete', 'old table as gone'),
    trigger('update', 'old table as gone new table as come'),
  ];
}

/**
 * Refuses a statement that leaves more than the statement itself permits. All locks are taken first and in order,
 * and every query of the function sees what others have committed by then.
 */
const checkOnPostgres = `create or replace function check_stored_bytes() returns void language plpgsql as $fn$
  declare
    given text := current_setting('strongroom.ceilings', true);
    one record;
  begin
    if coalesce(given, '') = '' then return; end if;
    for one in select distinct (c->>'tenant')::int as tenant, coalesce(c->>'application', '') as application
      from json_array_elements(given::json) as c order by 1, 2
    loop
      perform pg_advisory_xact_lock(one.tenant, hashtext('stored_bytes ' || one.application));
    end loop;
    for one in select (c->>'tenant')::int as tenant, decode(c->>'application', 'hex') as application,
      (c->>'bytes')::bigint as most, c->>'quota' as quota from json_array_elements(given::json) as c
    loop
      if (select sum(s.bytes) from stored_bytes s where s.tenant_id = one.tenant
        and (one.application is null or s.application_id = one.application)) > one.most
      then
        raise exception using errcode = '23514', message = 'a storage quota is exceeded', constraint = one.quota;
      end if;
    end loop;
  end $fn$`;
