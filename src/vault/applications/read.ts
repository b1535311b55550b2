/** Reading one application: by its id, or the one whose key is calling. */
import type { Clock } from '../../lib/clock.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { Store } from '../../store/store.ts';
import { provenApplicationOf, provenKeysOf } from './queries.ts';
import { viewApplication } from './view.ts';

export interface ApplicationReading {
  readonly store: Store;
  readonly clock: Clock;
}

/** From the decision `not_found`. */
export function readApplication(
  { store, clock }: ApplicationReading,
  caller: Caller,
  id: string,
): Decide {
  return async () => {
    const row = await provenApplicationOf(store, caller.tenant, id);
    const keys = await provenKeysOf(store, caller.tenant, [row]);
    const fact = { entity: 'application', id: row.application_id, operation: 'read' } as const;
    return {
      change: { entries: [entryOf(caller, clock.now(), fact)] },
      reply: { status: 200, body: viewApplication(row, keys) },
    };
  };
}

/** The application of the calling key; for a session, the one that created it. */
export function readOwnApplication(tools: ApplicationReading, caller: Caller): Decide {
  return readApplication(tools, caller, caller.application);
}
