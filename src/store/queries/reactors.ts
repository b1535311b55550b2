/** Queries about reactors. */
import type { Instant } from '../../lib/clock.ts';
import type { ReactorId, TenantId } from '../../lib/ids.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';
import { named } from './named.ts';

export interface ReactorFilter {
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
export type ReactorPosition = readonly [at: Instant, id: ReactorId];

export interface ReactorPage extends ReactorFilter {
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
}: ReactorPage): Query<Row<'reactors'>> {
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
