/** Deleting a reactor; asynchronous calls of it that wait end with it, and what they stored goes. */
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { ReactorReading } from './create.ts';
import { reactorOf } from './queries.ts';

/** From the decision `not_found`. A reactor that was altered can be deleted as well. */
export function deleteReactor(
  { store, clock }: ReactorReading,
  caller: Caller,
  id: string,
): Decide {
  return async () => {
    const { tenant_id, reactor_id, version } = await reactorOf(store, caller.tenant.id, id);
    const fact = { entity: 'reactor', id: reactor_id, operation: 'delete' } as const;
    return {
      change: {
        // Its runs are its own, and go with it.
        remove: { reactors: [{ tenant_id, reactor_id, version }] },
        entries: [entryOf(caller, clock.now(), fact)],
      },
      reply: { status: 204 },
    };
  };
}
