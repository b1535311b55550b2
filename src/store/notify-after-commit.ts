/** A store that notifies caches of each commit, so that they drop what they read before. */
import type { Epochs } from '../base/epochs.ts';
import type { Change } from './change.ts';
import type { CommitListener, Store, StoreEngine } from './store.ts';

export function notifyAfterCommit(engine: StoreEngine, epochs: Epochs): Store {
  const listeners: CommitListener[] = [];

  /** The first use of a key and the authorization of a session grant access and revoke none. */
  function advance({ insert, replace, remove }: Change): void {
    const hasChangedTenant = replace?.tenants ?? remove?.tenants;
    if (hasChangedTenant) epochs.advance('tenants');
    const hasChangedHolder = replace?.applications ?? remove?.applications ?? remove?.sessions;
    if (hasChangedTenant || hasChangedHolder || remove?.api_keys) epochs.advance('access');
    // A new proxy may have a host that was cached as the host of no proxy.
    if (insert?.proxies ?? replace?.proxies ?? remove?.proxies) epochs.advance('proxies');
    // A proxy is found by the names of its tenant.
    if (insert?.tenant_hosts ?? replace?.tenant_hosts ?? remove?.tenant_hosts) {
      epochs.advance('proxies');
    }
    if (insert?.reactor_runs) epochs.advance('reactor_runs');
    if (insert?.webhooks ?? replace?.webhooks ?? remove?.webhooks) epochs.advance('webhooks');
    if (remove?.client_keys) epochs.advance('client_keys');
    if (insert?.deliveries) epochs.advance('deliveries');
    if (insert?.events ?? insert?.deliveries) epochs.advance('events');
  }

  return {
    ...engine,
    epochs,
    subscribe: (listener) => {
      listeners.push(listener);
    },
    commit: (change) =>
      engine.commit(change).then(
        (outcome) => {
          if (outcome.conflict !== undefined) return outcome;
          advance(change);
          for (const notify of listeners) notify(change);
          return outcome;
        },
        (error: unknown) => {
          // The commit may have succeeded although its acknowledgement was lost.
          advance(change);
          throw error;
        },
      ),
  };
}
