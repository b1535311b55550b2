/** Queries about proxies. */
import type { Instant } from '../../base/clock.ts';
import type { ProxyId, TenantId } from '../../base/ids.ts';
import type { Query } from '../store.ts';
import type { Unproven } from '../stored-row.ts';
import { named } from './text-patterns.ts';

interface ProxyFilter {
  readonly tenant: TenantId;
  /** Not empty where it is given. */
  readonly ids?: readonly ProxyId[] | undefined;
  /** `*` stands for any characters. */
  readonly name?: string | undefined;
}

export function proxyCount({ tenant, ids, name }: ProxyFilter): Query<{ readonly count: number }> {
  return (db) => {
    let select = db
      .selectFrom('proxies')
      .where('tenant_id', '=', tenant)
      .select((eb) => eb.fn.countAll<number>().as('count'));
    if (ids) select = select.where('proxy_id', 'in', ids);
    if (name !== undefined) select = select.where(named(name));
    return select;
  };
}

/** Newest first, ties by id. */
type ProxyPosition = readonly [at: Instant, id: ProxyId];

interface ProxyPage extends ProxyFilter {
  readonly limit: number;
  /** Continues after this proxy; otherwise so many are passed over. */
  readonly after: ProxyPosition | undefined;
  readonly skip: number;
}

export function proxyPage({
  tenant,
  ids,
  name,
  limit,
  after,
  skip,
}: ProxyPage): Query<Unproven<'proxies'>> {
  return (db) => {
    let select = db
      .selectFrom('proxies')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .orderBy('created_at', 'desc')
      .orderBy('proxy_id', 'desc')
      .limit(limit);
    if (ids) select = select.where('proxy_id', 'in', ids);
    if (name !== undefined) select = select.where(named(name));
    if (after === undefined) return select.offset(skip);
    return select.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('created_at', 'proxy_id'), '<', tuple(...after)),
    );
  };
}
