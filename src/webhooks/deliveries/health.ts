/** Records in the database since when every delivery to a webhook has failed, so that all servers share it. */
import type { Instant } from '../../base/clock.ts';
import type { TenantId, WebhookId } from '../../base/ids.ts';
import type { Store } from '../../store/store.ts';

export interface Health {
  readonly isFailing: boolean;
  /** @returns how long no delivery has succeeded, in milliseconds. */
  failed(now: Instant): Promise<number>;
  succeeded(): Promise<void>;
}

/** Reads at the first outcome; writes when a success follows a failure, or a failure follows a success. */
export function createHealth(
  store: Store,
  key: { readonly tenant_id: TenantId; readonly webhook_id: WebhookId },
): Health {
  let since: Instant | undefined;
  let isKnown = false;

  async function learn(): Promise<void> {
    since = (await store.get('webhook_failures', key))?.since;
    isKnown = true;
  }

  return {
    get isFailing() {
      return since !== undefined;
    },
    failed: async (now) => {
      if (!isKnown) await learn();
      if (since === undefined) {
        since = now;
        const { conflict } = await store.record({
          insert: { webhook_failures: [{ ...key, since }] },
        });
        if (conflict !== undefined) await learn();
      }
      return now - (since ?? now);
    },
    succeeded: async () => {
      if (!isKnown) await learn();
      if (since === undefined) return;
      since = undefined;
      await store.record({ remove: { webhook_failures: [key] } });
    },
  };
}
