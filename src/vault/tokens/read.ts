/** Reading a token. */
import { newEvaluation } from '../../expressions/evaluation.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Store } from '../../store/store.ts';
import { decide } from '../access/access.ts';
import type { Caller } from '../access/caller.ts';
import { entryOf } from '../logs/audit.ts';
import { type Decide, refuse } from '../perform.ts';
import { liveToken } from './queries.ts';
import { openData } from './row.ts';
import { type OnMaskFailure, viewToken } from './view.ts';

export interface TokenReading {
  readonly store: Store;
  readonly clock: Clock;
  readonly onMaskFailure: OnMaskFailure;
}

/** From the decision `not_found`. */
export function readToken(tools: TokenReading, caller: Caller, id: string): Decide {
  const { store, clock, onMaskFailure } = tools;
  const { tenant } = caller;
  return async () => {
    const now = clock.now();
    const row = await liveToken(store, { tenant: tenant.id, id, now });
    const subject = { id: row.token_id, container: row.container };
    const grant = decide(caller.policy, 'token:read', subject);
    if (!grant) {
      return refuse(caller, now, { entity: 'token', id: row.token_id, permission: 'token:read' });
    }
    const open = () => openData(tenant, row, now);
    return {
      change: {
        entries: [entryOf(caller, now, { entity: 'token', id: row.token_id, operation: 'read' })],
      },
      reply: {
        status: 200,
        body: viewToken({ row, open, grant, evaluation: newEvaluation(), onMaskFailure }),
      },
    };
  };
}
