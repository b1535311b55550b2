/** Deleting a token, for good. */
import type { Clock } from '../base/clock.ts';
import type { Caller } from '../rules/caller.ts';
import { tagOf } from '../rules/entity-tag.ts';
import { entryOf } from '../rules/log-entries.ts';
import type { Decide } from '../rules/operation.ts';
import { decide } from '../rules/policy.ts';
import { refuse } from '../rules/refusal.ts';
import type { Store } from '../store/store.ts';
import { removedToken } from './contents/sealed-row.ts';
import { liveToken } from './queries.ts';

export interface TokenDeleting {
  readonly store: Store;
  readonly clock: Clock;
}

/** From the decision `not_found`. */
export function deleteToken({ store, clock }: TokenDeleting, caller: Caller, id: string): Decide {
  return async () => {
    const now = clock.now();
    const row = await liveToken(store, { tenant: caller.tenant.id, id, now });
    const subject = { id: row.token_id, container: row.container };
    if (!decide(caller.policy, 'token:delete', subject)) {
      return refuse(caller, now, { entity: 'token', ...subject, permission: 'token:delete' });
    }
    return {
      change: {
        remove: { tokens: [removedToken(row)] },
        entries: [entryOf(caller, now, { entity: 'token', ...subject, operation: 'delete' })],
      },
      reply: { status: 204 },
      before: () => tagOf('tokens', row),
    };
  };
}
