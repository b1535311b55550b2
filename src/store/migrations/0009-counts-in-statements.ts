/**
 * Migration 9: on PostgreSQL the statement of a commit itself says by how much it changes the stored bytes, at a
 * fraction of the cost of triggers, and also where tables are distributed and have none. The triggers still count for
 * servers of earlier releases.
 */
import {
  countings,
  countStored,
  findDistributed,
  functionOnPostgres,
} from './0005-stored-bytes.ts';
import type { ColumnTypes } from './column-types.ts';

/** Set within the transaction of a statement that counts by itself. */
export const countsItself = "set_config('strongroom.counts_itself', 'yes', true) = 'yes'";

const unlessCounted = `if current_setting('strongroom.counts_itself', true) = 'yes' then return null; end if;
      `;

export function countsInStatements({ engine }: ColumnTypes): string[] {
  if (engine !== 'postgres') return [];
  const counted = countings(true);
  return [
    ...counted.map((one) => functionOnPostgres(one, unlessCounted)),
    lockOnPostgres,
    checkOnPostgres,
    // Nothing counted there until now.
    `${findDistributed}
      if not distributed then return; end if;
      delete from stored_bytes;
      ${countStored(counted)};
    end $do$`,
  ];
}

/**
 * Before the statement writes or compares anything, so that no other transaction counts for the same tenants under a
 * ceiling until the commit. Servers of all releases take the same locks.
 */
const lockOnPostgres = `create or replace function lock_stored_bytes(tenants integer[], applications bytea[])
  returns boolean language plpgsql as $fn$
  begin
    for place in 1 .. cardinality(tenants) loop
      perform pg_advisory_xact_lock(tenants[place],
        hashtext('stored_bytes ' || coalesce(encode(applications[place], 'hex'), '')));
    end loop;
    return true;
  end $fn$`;

/** The query of the function sees what others have committed by then, and what its own statement has counted. */
const checkOnPostgres = `create or replace function check_stored_bytes_of(
    quota text, tenant integer, application bytea, most bigint, added bigint)
  returns boolean language plpgsql as $fn$
  begin
    if added > 0 and most < (select sum(s.bytes) from stored_bytes s
      where s.tenant_id = tenant and (application is null or s.application_id = application))
    then
      raise exception using errcode = '23514', message = 'a storage quota is exceeded', constraint = quota;
    end if;
    return true;
  end $fn$`;
