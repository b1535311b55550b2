/** Creating a session: a key without rights, and the nonce with which an application authorizes it. */
import { instantAfter } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import { newUuid, type SessionId } from '../../base/ids.ts';
import { hashSessionNonce, newSessionNonce } from '../../keys/session-nonce.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { proven } from '../../rules/proven-row.ts';
import { newKey } from '../applications/api-key-row.ts';
import type { KeyWriting } from '../applications/keys.ts';
import { storedAccess } from '../applications/row.ts';
import { needsKey, sessionLifeMs } from './sessions.ts';

export function createSession({ clock, random }: KeyWriting, caller: Caller): Decide {
  const { tenant, application } = caller;
  if (!caller.key) throw needsKey();
  const created_by_key = caller.key;
  return async () => {
    const now = clock.now();
    const id = newUuid<SessionId>(random);
    const nonce = newSessionNonce(random);
    const key = newKey({
      tenant,
      application,
      kind: 'session',
      session: id,
      by: application,
      now,
      random,
    });
    const row = proven(tenant, 'sessions', {
      tenant_id: tenant.id,
      session_id: id,
      version: 1,
      application_id: application,
      key_hash: key.row.key_hash,
      nonce_hash: hashSessionNonce(nonce),
      ...storedAccess({ permissions: [], rules: [] }),
      authorized_by: null,
      authorized_at: null,
      created_at: now,
      expires_at: instantAfter(now, sessionLifeMs),
      created_by_key,
      authorized_by_key: null,
    });
    return {
      change: {
        insert: { sessions: [row], api_keys: [key.row] },
        entries: [entryOf(caller, now, { entity: 'session', id, operation: 'create' })],
      },
      reply: {
        status: 201,
        body: { session_key: key.text, nonce, expires_at: formatTimestamp(row.expires_at) },
      },
    };
  };
}
