/** Reading one reactor. */
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { ReactorReading } from './create.ts';
import { reactorOf } from './queries.ts';
import { viewReactor } from './view.ts';

/** From the decision `not_found`, or `integrity` when the reactor was altered. */
export function readReactor({ store, clock }: ReactorReading, caller: Caller, id: string): Decide {
  return async () => {
    const row = await reactorOf(store, caller.tenant.id, id);
    const fact = { entity: 'reactor', id: row.reactor_id, operation: 'read' } as const;
    return {
      change: { entries: [entryOf(caller, clock.now(), fact)] },
      reply: { status: 200, body: viewReactor(caller, row, 'reactor:read') },
    };
  };
}
