/** Updating an application: name, permissions and rules are replaced as a whole. */
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { proven } from '../../rules/proven-row.ts';
import type { ApplicationWriting } from './create.ts';
import { provenApplicationOf, provenKeysOf } from './queries.ts';
import { type AccessRequest, readAccess, storedAccess } from './row.ts';
import { viewApplication } from './view.ts';

export interface ApplicationUpdate extends AccessRequest {
  readonly name: string;
}

/**
 * From the decision `not_found`, `validation_failed` by the kind of the application, or `integrity` when it or
 * one of its keys was altered.
 */
export function updateApplication(
  { store, clock }: ApplicationWriting,
  caller: Caller,
  { id, update }: { readonly id: string; readonly update: ApplicationUpdate },
): Decide {
  return async () => {
    const now = clock.now();
    const row = await provenApplicationOf(store, caller.tenant, id);
    const keys = await provenKeysOf(store, caller.tenant, [row]);
    const updated = proven(caller.tenant, 'applications', {
      ...row,
      version: row.version + 1,
      name: update.name,
      ...storedAccess(readAccess(update, row.type)),
      modified_by: caller.application,
      modified_at: now,
    });
    const fact = { entity: 'application', id: row.application_id, operation: 'update' } as const;
    return {
      change: { replace: { applications: [updated] }, entries: [entryOf(caller, now, fact)] },
      reply: { status: 200, body: viewApplication(updated, keys) },
    };
  };
}
