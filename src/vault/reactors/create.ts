/** Creating a reactor. */
import { newUuid, type ReactorId } from '../../lib/ids.ts';
import type { Random } from '../../lib/random.ts';
import type { Caller } from '../../rules/caller.ts';
import { requireLinkedApplication } from '../../rules/linked-application.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { requireRoom } from '../../rules/settings.ts';
import { reactorCount } from '../../store/queries/reactors.ts';
import type { Store } from '../../store/store.ts';
import {
  type CodeTools,
  refusalOfRights,
  refusalWhereOff,
  requireRunnable,
} from '../code/check.ts';
import type { ReactorDefinition } from './definition.ts';
import { parseReactor, type ReactorRequest } from './request.ts';
import { reactorRow } from './row.ts';
import { configurationPermission, viewReactor, viewWithoutValues } from './view.ts';

export interface ReactorReading extends Pick<CodeTools, 'clock'> {
  readonly store: Store;
}

export interface ReactorWriting extends ReactorReading, CodeTools {
  readonly random: Random;
}

/**
 * From the decision `forbidden` where code is switched off, or is lent rights that the key cannot lend;
 * `unprocessable` for code that cannot be run, and where the tenant has all the reactors that it may have;
 * `validation_failed` for an application that cannot be used.
 * @throws VaultError `validation_failed` naming every attribute that is wrong.
 */
export function createReactor(
  tools: ReactorWriting,
  caller: Caller,
  request: ReactorRequest,
): Decide {
  const { name, definition } = parseReactor(request);
  const { store, clock, random } = tools;
  const { tenant, application: by } = caller;
  const attempt = { entity: 'reactor', id: '*', operation: 'create' } as const;
  return async () => {
    const refused =
      refusalWhereOff(tools, caller, attempt) ??
      refusalOfRights(tools, caller, { ...attempt, ...definition });
    if (refused) return refused;
    await requireLinkedApplication(store, tenant, definition.application_id);
    requireRoom(
      tenant.quotas,
      'reactor_limit',
      await store.select(reactorCount({ tenant: tenant.id })),
    );
    await requireUsable(tools, caller, definition);
    const now = clock.now();
    const id = newUuid<ReactorId>(random);
    const row = reactorRow(
      { tenant, definition, random },
      {
        tenant_id: tenant.id,
        reactor_id: id,
        version: 1,
        name,
        created_by: by,
        created_at: now,
        modified_by: null,
        modified_at: null,
      },
    );
    return {
      change: {
        insert: { reactors: [row] },
        entries: [entryOf(caller, now, { entity: 'reactor', id, operation: 'create' })],
      },
      reply: {
        status: 201,
        location: `/reactors/${id}`,
        body: viewReactor(caller, row, 'reactor:create'),
        narrower: {
          permission: configurationPermission,
          body: viewWithoutValues(caller, row, 'reactor:create'),
        },
      },
    };
  };
}

/** @throws VaultError `unprocessable` for code that cannot be run. */
export function requireUsable(
  { code: engine }: CodeTools,
  { tenant }: Caller,
  { code, runtime }: ReactorDefinition,
): Promise<void> {
  const paths = { path: 'code', runtimePath: 'runtime' };
  return requireRunnable(engine, tenant, { code, runtime, ...paths });
}
