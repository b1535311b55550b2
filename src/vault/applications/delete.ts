/** Deleting an application and all of its keys; sessions it took part in end with it. */
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { removableKeys } from '../../store/queries/applications.ts';
import { applicationOf } from './queries.ts';
import type { ApplicationReading } from './read.ts';

/**
 * From the decision `not_found`. A key that is created meanwhile raises the application's version,
 * so none can be left behind. A row that somebody made unreadable is: without its application it
 * gives no access, and it must not keep the other keys in use.
 */
export function deleteApplication(
  { store, clock }: ApplicationReading,
  caller: Caller,
  id: string,
): Decide {
  return async () => {
    const now = clock.now();
    const row = await applicationOf(store, caller.tenant.id, id);
    const { tenant_id, application_id, version } = row;
    const keys = await store.select(removableKeys(tenant_id, application_id));
    return {
      change: {
        remove: {
          applications: [{ tenant_id, application_id, version }],
          api_keys: keys,
        },
        entries: [
          entryOf(caller, now, { entity: 'application', id: application_id, operation: 'delete' }),
          ...keys.map((key) =>
            entryOf(caller, now, {
              entity: 'application_key',
              id: key.key_id,
              operation: 'delete',
              event: { application_key: { application_id } },
            }),
          ),
        ],
      },
      reply: { status: 204 },
    };
  };
}
