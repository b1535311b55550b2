/** Reading one proxy. */
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { ProxyReading } from './create.ts';
import { proxyOf } from './queries.ts';
import { viewProxy } from './view.ts';

/** From the decision `not_found`, or `integrity` when the proxy was altered. */
export function readProxy(
  { store, clock, names }: ProxyReading,
  caller: Caller,
  id: string,
): Decide {
  return async () => {
    const row = await proxyOf(store, caller.tenant.id, id);
    const fact = { entity: 'proxy', id: row.proxy_id, operation: 'read' } as const;
    return {
      change: { entries: [entryOf(caller, clock.now(), fact)] },
      reply: { status: 200, body: viewProxy(names, { caller, by: 'proxy:read' }, row) },
    };
  };
}
