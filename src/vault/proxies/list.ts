/** Listing proxies, newest first. */
import type { Caller } from '../../rules/caller.ts';
import { listNamed, type NamedQuery } from '../../rules/offset-page.ts';
import type { Decide } from '../../rules/operation.ts';
import { proxyCount, proxyPage } from '../../store/queries/proxies.ts';
import type { Row } from '../../store/tables.ts';
import type { ProxyReading } from './create.ts';
import { viewProxy } from './view.ts';

const list = {
  entity: 'proxy',
  route: 'GET /proxies',
  count: proxyCount,
  page: proxyPage,
  idOf: (row: Row<'proxies'>) => row.proxy_id,
} as const;

/**
 * From the decision `integrity` when a proxy of the page was altered.
 * @throws VaultError `validation_failed` for an invalid cursor.
 */
export function listProxies(tools: ProxyReading, caller: Caller, query: NamedQuery): Decide {
  const view = (one: Caller, row: Row<'proxies'>) =>
    viewProxy(tools.names, { caller: one, by: 'proxy:read' }, row);
  return listNamed(tools, caller, { query, list: { ...list, view } });
}
