/** Reading a token. */

import type { Clock } from '../base/clock.ts';
import { newEvaluation } from '../expressions/evaluation/evaluation.ts';
import type { Caller } from '../rules/caller.ts';
import { tagOf } from '../rules/entity-tag.ts';
import { openerFor } from '../rules/openings.ts';
import type { Decide } from '../rules/operation.ts';
import { decide } from '../rules/policy.ts';
import { refuse } from '../rules/refusal.ts';
import type { Store } from '../store/store.ts';
import { readEntry } from './contents/read-entry.ts';
import { sealedData } from './contents/sealed-row.ts';
import { type OnMaskFailure, shownAs, viewToken } from './contents/view.ts';
import { liveToken } from './queries.ts';

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
    const found = await liveToken(store, { tenant: tenant.id, id, now });
    const subject = { id: found.token_id, container: found.container };
    const grant = decide(caller.policy, 'token:read', subject);
    if (!grant) {
      return refuse(caller, now, { entity: 'token', ...subject, permission: 'token:read' });
    }
    const sealed = sealedData(openerFor(caller, grant), found, now);
    const disclosure = { shown: shownAs(grant, sealed), through: 'get' } as const;
    const { row, body } = viewToken({ sealed, grant, evaluation: newEvaluation(), onMaskFailure });
    const entry = readEntry(caller, now, { row, disclosure, body });
    return {
      change: { entries: [entry] },
      reply: { status: 200, etag: tagOf('tokens', row), body },
      before: () => tagOf('tokens', row),
    };
  };
}
