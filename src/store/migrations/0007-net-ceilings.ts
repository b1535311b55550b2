/**
 * Migration 7: on PostgreSQL a change that leaves less stored than it found goes through, also where it inserts rows
 * and where more than the quota is stored, as in the embedded database, which compares what the change adds in all.
 */
import type { ColumnTypes } from './column-types.ts';

export function netCeilings({ engine }: ColumnTypes): string[] {
  return engine === 'postgres' ? [beginOnPostgres, checkOnPostgres] : [];
}

const ceilings = `select (c->>'tenant')::int as tenant, decode(c->>'application', 'hex') as application,
  (c->>'bytes')::bigint as most, (c->>'before')::bigint as before, c->>'quota' as quota, c as given
  from jsonb_array_elements(given::jsonb) as c`;

const bytesOf = (one: string) => `(select coalesce(sum(s.bytes), 0) from stored_bytes s
  where s.tenant_id = ${one}.tenant and (${one}.application is null or s.application_id = ${one}.application))`;

const takeLocks = `for one in
      select distinct (c->>'tenant')::int as tenant, coalesce(c->>'application', '') as application
      from jsonb_array_elements(given::jsonb) as c order by 1, 2
    loop
      perform pg_advisory_xact_lock(one.tenant, hashtext('stored_bytes ' || one.application));
    end loop;`;

/**
 * For a statement with one change, before its triggers count. It takes the locks first, so that no other transaction
 * counts for the same tenants under a ceiling until the commit. Each query of the function sees what others have
 * committed by then.
 */
const beginOnPostgres = `create or replace function begin_stored_bytes(given text) returns boolean
  language plpgsql as $fn$
  declare
    one record;
  begin
    ${takeLocks}
    perform set_config('strongroom.ceilings', (
      select jsonb_agg(each.given || jsonb_build_object('before', ${bytesOf('each')}))
      from (${ceilings}) as each)::text, true);
    return true;
  end $fn$`;

/** A statement of several changes, or of a server of the release before, says only the ceilings themselves. */
const checkOnPostgres = `create or replace function check_stored_bytes() returns void language plpgsql as $fn$
  declare
    given text := current_setting('strongroom.ceilings', true);
    one record;
    stored bigint;
  begin
    if coalesce(given, '') = '' then return; end if;
    if position('"before"' in given) = 0 then
      ${takeLocks}
    end if;
    for one in ${ceilings} loop
      stored := ${bytesOf('one')};
      if stored > one.most and (one.before is null or stored > one.before) then
        raise exception using errcode = '23514', message = 'a storage quota is exceeded', constraint = one.quota;
      end if;
    end loop;
  end $fn$`;
