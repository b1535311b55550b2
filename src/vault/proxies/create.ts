/** Creating a proxy, with the key by which it is called. */
import { hashProxyKey, newProxyKey } from '../../crypto/proxy-key.ts';
import type { Clock } from '../../lib/clock.ts';
import { newUuid, type ProxyId } from '../../lib/ids.ts';
import type { Random } from '../../lib/random.ts';
import type { Caller } from '../../rules/caller.ts';
import type { VaultNames } from '../../rules/host-names.ts';
import { requireLinkedApplication } from '../../rules/linked-application.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { requireRoom } from '../../rules/settings.ts';
import { proxyCount } from '../../store/queries/proxies.ts';
import type { Store } from '../../store/store.ts';
import type { CodeTools } from '../code/check.ts';
import { refusalOfLending } from './check-lending.ts';
import { addressesToChange, requireGiven } from './queries.ts';
import { type ProxyRequest, parseProxy } from './request.ts';
import { proxyRow } from './row.ts';
import { configurationPermission, viewProxy, viewWithoutValues } from './view.ts';

export interface ProxyReading {
  readonly names: VaultNames;
  readonly store: Store;
  readonly clock: Clock;
}

export interface ProxyWriting extends ProxyReading, CodeTools {
  readonly random: Random;
}

/**
 * From the decision `conflict` where the host is another proxy's, `validation_failed` where the tenant was not given
 * it, `unprocessable` where the tenant has all
 * the proxies that it may have, `validation_failed` for an application that cannot be used.
 * @throws VaultError `validation_failed` naming every attribute that is wrong.
 */
export function createProxy(tools: ProxyWriting, caller: Caller, request: ProxyRequest): Decide {
  const { store, clock, random, names } = tools;
  const { name, host, definition } = parseProxy(request, names);
  const { tenant, application: by } = caller;
  const attempt = { entity: 'proxy', id: '*', operation: 'create' } as const;
  return async () => {
    const refused = await refusalOfLending(tools, caller, { ...attempt, definition });
    if (refused) return refused;
    const now = clock.now();
    await requireLinkedApplication(store, tenant, definition.application_id);
    requireRoom(
      tenant.quotas,
      'proxy_limit',
      await store.select(proxyCount({ tenant: tenant.id })),
    );
    const [key, id] = [newProxyKey(random), newUuid<ProxyId>(random)];
    const row = proxyRow(
      { tenant, body: { key, definition }, random },
      {
        tenant_id: tenant.id,
        proxy_id: id,
        version: 1,
        name,
        key_hash: hashProxyKey(key),
        host,
        created_by: by,
        created_at: now,
        modified_by: null,
        modified_at: null,
      },
    );
    await requireGiven(store, tenant, host);
    const { insert } = await addressesToChange(store, { after: row });
    const viewing = { caller, by: 'proxy:create' } as const;
    return {
      change: {
        insert: { proxies: [row], ...insert },
        entries: [entryOf(caller, now, { entity: 'proxy', id, operation: 'create' })],
      },
      reply: {
        status: 201,
        location: `/proxies/${id}`,
        body: viewProxy(names, viewing, row),
        narrower: {
          permission: configurationPermission,
          body: viewWithoutValues(names, viewing, row),
        },
      },
    };
  };
}
