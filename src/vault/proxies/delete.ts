/** Deleting a proxy; its key and its host lead nowhere from then on. */
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { ProxyReading } from './create.ts';
import { proxyOf } from './queries.ts';

/** From the decision `not_found`. A proxy that was altered can be deleted as well. */
export function deleteProxy({ store, clock }: ProxyReading, caller: Caller, id: string): Decide {
  return async () => {
    const { tenant_id, proxy_id, version } = await proxyOf(store, caller.tenant.id, id);
    const fact = { entity: 'proxy', id: proxy_id, operation: 'delete' } as const;
    return {
      change: {
        // The directory's rows are the proxy's own, and go with it.
        remove: { proxies: [{ tenant_id, proxy_id, version }] },
        entries: [entryOf(caller, clock.now(), fact)],
      },
      reply: { status: 204 },
    };
  };
}
