/** Creating an application, by default with its first key. */
import type { Clock } from '../../lib/clock.ts';
import { type ApplicationId, newUuid } from '../../lib/ids.ts';
import type { Random } from '../../lib/random.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { ApplicationKind } from '../../rules/permissions.ts';
import type { Store } from '../../store/store.ts';
import { newKey } from './api-key-row.ts';
import { type AccessRequest, applicationRow, readAccess } from './row.ts';
import { viewNewApplication } from './view.ts';

export interface ApplicationRequest extends AccessRequest {
  readonly name: string;
  readonly type: ApplicationKind;
  readonly create_key?: boolean | null;
}

export interface ApplicationWriting {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
}

const keyCreated = { entity: 'application_key', operation: 'create' } as const;

/** @throws VaultError `validation_failed` naming every attribute that is wrong. */
export function createApplication(
  { clock, random }: ApplicationWriting,
  caller: Caller,
  request: ApplicationRequest,
): Decide {
  const access = readAccess(request, request.type);
  const { tenant, application: by } = caller;
  return async () => {
    const now = clock.now();
    const id = newUuid<ApplicationId>(random);
    const key =
      request.create_key === false
        ? undefined
        : newKey({ tenant, application: id, kind: request.type, by, now, random });
    const row = applicationRow({
      tenant,
      id,
      name: request.name,
      kind: request.type,
      access,
      key: key?.row.key_id,
      by,
      now,
    });
    return {
      change: {
        insert: { applications: [row], ...(key && { api_keys: [key.row] }) },
        entries: [
          entryOf(caller, now, { entity: 'application', id, operation: 'create' }),
          ...(key ? [entryOf(caller, now, { ...keyCreated, id: key.row.key_id })] : []),
        ],
      },
      reply: {
        status: 201,
        location: `/applications/${id}`,
        body: viewNewApplication(row, key),
      },
    };
  };
}
