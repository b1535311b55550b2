/** Authorizing a session: a private application grants it part of its own rights, once. */
import type { Clock, Instant } from '../../base/clock.ts';
import { expiryForms, parseExpiry } from '../../base/dates.ts';
import { invalid, VaultError } from '../../base/errors.ts';
import { createValidationErrors } from '../../base/validation-errors.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { covers, holds, policyOf } from '../../rules/policy.ts';
import { proven } from '../../rules/proven-row.ts';
import { forbid } from '../../rules/refusal.ts';
import type { Store } from '../../store/store.ts';
import { type AccessRequest, readAccess, storedAccess } from '../applications/row.ts';
import { authorityOf } from '../authority.ts';
import { needsKey, sessionLifeMsMax, sessionOfNonce } from './sessions.ts';

export interface Authorization extends AccessRequest {
  readonly nonce: string;
  /** When the session ends; without it, when it was to end anyway. */
  readonly expires_at?: string | null;
}

export interface SessionAuthorizing {
  readonly store: Store;
  readonly clock: Clock;
}

/**
 * From the decision: `not_found` for a nonce that is unknown or whose session has ended,
 * `conflict` for one that was used.
 * @throws VaultError `validation_failed` naming every invalid attribute.
 */
export function authorizeSession(
  { store, clock }: SessionAuthorizing,
  caller: Caller,
  request: Authorization,
): Decide {
  const errors = createValidationErrors();
  const access = errors.attempt(() => readAccess(request, 'session'));
  const expiry = errors.attempt(() => readExpiry(request.expires_at, clock.now()));
  errors.settle();
  if (!caller.key) throw needsKey();
  const authorized_by_key = caller.key;
  if (!access) throw invalid('permissions', 'is required');
  return async () => {
    const now = clock.now();
    const row = await sessionOfNonce(store, caller.tenant, request.nonce);
    if (!row) throw noSession();
    const session = { application: row.application_id, key: undefined, session: row.session_id };
    const authority = await authorityOf(store, caller.tenant, { credential: session, now });
    if ('ended' in authority) throw noSession();
    if (row.authorized_by !== null) {
      throw new VaultError('conflict', { public: 'The nonce has already been used.' });
    }
    const fact = { entity: 'session', id: row.session_id, operation: 'authorize' } as const;
    const granted = policyOf(access);
    if (!covers(caller.policy, granted)) {
      return forbid(caller, now, { ...fact, message: exceeding });
    }
    // A session has no egress policies, so it could send values anywhere, by ephemeral proxies.
    if (caller.egress && holds(granted, 'proxy:invoke')) {
      return forbid(caller, now, { ...fact, message: bypassing });
    }
    const authorized = proven(caller.tenant, 'sessions', {
      ...row,
      version: row.version + 1,
      ...storedAccess(access),
      authorized_by: caller.application,
      authorized_by_key,
      authorized_at: now,
      expires_at: expiry ?? row.expires_at,
    });
    return {
      change: { replace: { sessions: [authorized] }, entries: [entryOf(caller, now, fact)] },
      reply: { status: 200 },
    };
  };
}

function noSession(): VaultError {
  return new VaultError('not_found', { public: 'There is no session with this nonce.' });
}

const bypassing =
  'The application has egress policies, which a session has not, so it cannot grant proxy:invoke.';
const exceeding =
  'The session would be allowed more than the application that authorizes it. The application itself ' +
  'must hold every permission that it grants, for all tokens of the rule and with a transform that ' +
  'shows as much.';

function readExpiry(text: string | null | undefined, now: Instant): Instant | undefined {
  if (text === undefined || text === null) return undefined;
  const expiry = parseExpiry(text);
  if (expiry === undefined) throw invalid('expires_at', expiryForms);
  if (expiry.at <= now) throw invalid('expires_at', 'must be in the future');
  if (expiry.at > now + sessionLifeMsMax) {
    throw invalid('expires_at', 'must be at most 24 hours ahead');
  }
  return expiry.at;
}
