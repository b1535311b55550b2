/** Notifies caches of each commit, so that they drop what they read before. */
import type { Epochs } from '../base/epochs.ts';
import type { Change, CommitOutcome } from './change.ts';
import type { CommitListener, Store, StoreEngine } from './store.ts';

/** Called when a commit has ended, before anything that waits for it continues. */
export type OnCommitEnd = (change: Change, outcome: CommitOutcome | Error) => void;

/** The store of an engine that calls what it is given at the end of each commit. */
export async function notifyAfterCommit(
  epochs: Epochs,
  engineWith: (onCommitEnd: OnCommitEnd) => StoreEngine | Promise<StoreEngine>,
): Promise<Store> {
  const listeners: CommitListener[] = [];

  /** The first use of a key and the authorization of a session grant access and revoke none. */
  function advance({ insert, replace, remove }: Change): void {
    const hasChangedTenant = replace?.tenants ?? remove?.tenants;
    if (hasChangedTenant) epochs.advance('tenants');
    const hasChangedHolder = replace?.applications ?? remove?.applications ?? remove?.sessions;
    const hasChangedPerson =
      replace?.people ?? remove?.people ?? remove?.console_sessions ?? replace?.console_sessions;
    if (hasChangedTenant || hasChangedHolder || hasChangedPerson || remove?.api_keys) {
      epochs.advance('access');
    }
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

  const engine = await engineWith((change, outcome) => {
    if (outcome instanceof Error) {
      // The commit may have succeeded although its acknowledgement was lost.
      advance(change);
    } else if (outcome.conflict === undefined) {
      advance(change);
      for (const notify of listeners) notify(change);
    }
  });
  return {
    ...engine,
    epochs,
    subscribe: (listener) => {
      listeners.push(listener);
    },
  };
}
