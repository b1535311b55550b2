/** Queries about reactors and calls of them. */
import { sql } from 'kysely';
import { day, type Instant } from '../../base/clock.ts';
import type { ReactorId, ReactorRunId, TenantId } from '../../base/ids.ts';
import type { Query } from '../store.ts';
import type { Unproven } from '../stored-row.ts';
import { named } from './text-patterns.ts';

interface ReactorFilter {
  readonly tenant: TenantId;
  /** Not empty where it is given. */
  readonly ids?: readonly ReactorId[] | undefined;
  /** `*` stands for any characters. */
  readonly name?: string | undefined;
}

export function reactorCount({
  tenant,
  ids,
  name,
}: ReactorFilter): Query<{ readonly count: number }> {
  return (db) => {
    let select = db
      .selectFrom('reactors')
      .where('tenant_id', '=', tenant)
      .select((eb) => eb.fn.countAll<number>().as('count'));
    if (ids) select = select.where('reactor_id', 'in', ids);
    if (name !== undefined) select = select.where(named(name));
    return select;
  };
}

/** Newest first, ties by id. */
type ReactorPosition = readonly [at: Instant, id: ReactorId];

interface ReactorPage extends ReactorFilter {
  readonly limit: number;
  /** Continues after this reactor; otherwise so many are passed over. */
  readonly after: ReactorPosition | undefined;
  readonly skip: number;
}

export function reactorPage({
  tenant,
  ids,
  name,
  limit,
  after,
  skip,
}: ReactorPage): Query<Unproven<'reactors'>> {
  return (db) => {
    let select = db
      .selectFrom('reactors')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .orderBy('created_at', 'desc')
      .orderBy('reactor_id', 'desc')
      .limit(limit);
    if (ids) select = select.where('reactor_id', 'in', ids);
    if (name !== undefined) select = select.where(named(name));
    if (after === undefined) return select.offset(skip);
    return select.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('created_at', 'reactor_id'), '<', tuple(...after)),
    );
  };
}

/** Newest first, ties by id. */
export type RunPosition = readonly [at: Instant, id: ReactorRunId];

export interface RunPage {
  readonly tenant: TenantId;
  readonly reactor: ReactorId;
  /** What has expired by then is left out. */
  readonly now: Instant;
  readonly limit: number;
  readonly after: RunPosition | undefined;
  /** Calls that have ended, or earlier code of the reactor. */
  readonly kept: 'calls' | 'versions';
}

/** What is kept for longer is no call. */
const callKeptMsMax = 30 * day;
const keptMs = sql<number>`expires_at - created_at`;
/** Written out, as the index of versions has it. */
const callMsMax = sql.lit(callKeptMsMax);

/** A stored call, and how large what is sealed of it is. */
export type RunOfPage = Unproven<'reactor_runs'> & { readonly bytes: number };

export function runPage({ tenant, reactor, now, limit, after, kept }: RunPage): Query<RunOfPage> {
  return (db) => {
    const select = db
      .selectFrom('reactor_runs')
      .selectAll()
      .select(sql<number>`octet_length(body)`.as('bytes'))
      .$castTo<RunOfPage>()
      .where('tenant_id', '=', tenant)
      .where('reactor_id', '=', reactor)
      .where('due_at', 'is', null)
      // Not as a range of the index by expiry, behind which all of them would have to be sorted.
      .where(sql<number>`expires_at - ${now}`, '>', 0)
      .where(keptMs, kept === 'calls' ? '<=' : '>', callMsMax)
      .orderBy('created_at', 'desc')
      .orderBy('run_id', 'desc')
      .limit(limit);
    if (after === undefined) return select;
    return select.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('created_at', 'run_id'), '<', tuple(...after)),
    );
  };
}

/** Of all that is sealed of a tenant's calls. Reads all of its rows. */
export function storedRunBytes(
  tenant: TenantId,
): Query<{ readonly bytes: number | string | null }> {
  return (db) =>
    db
      .selectFrom('reactor_runs')
      .where('tenant_id', '=', tenant)
      .select(sql<number | string | null>`sum(octet_length(body))`.as('bytes'));
}

/** Of a tenant, those that have not ended. */
export function waitingRunCount(tenant: TenantId): Query<{ readonly count: number }> {
  return (db) =>
    db
      .selectFrom('reactor_runs')
      .where('tenant_id', '=', tenant)
      .where('due_at', 'is not', null)
      .select((eb) => eb.fn.countAll<number>().as('count'));
}
