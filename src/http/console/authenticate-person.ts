/** Requests of the console: the person of the session is the caller, as the application that the request names. */
import type { Authenticate } from '../../access/authenticate.ts';
import type { ConsoleSessions } from '../../access/console-sessions.ts';
import type { KeyFlaw, OnFailedAuthentication } from '../../access/failed-authentication.ts';
import type { FailedAttempts } from '../../access/failure-limit.ts';
import { isIntegrityError, VaultError } from '../../base/errors.ts';
import { type ApplicationId, parseUuid } from '../../base/ids.ts';
import { LruCache } from '../../base/lru-cache.ts';
import { hashConsoleSecret, isForgeryToken } from '../../keys/console-secret.ts';
import type { RefusedConsoleSession } from '../../rules/anonymous-entries.ts';
import type { Caller, Origin } from '../../rules/caller.ts';
import { readConsoleKey } from './credential.ts';

export interface PersonAuthentication {
  /** For keys. */
  readonly authenticate: Authenticate;
  readonly sessions: ConsoleSessions;
  readonly onFailure: OnFailedAuthentication;
  readonly attempts: FailedAttempts;
}

/** Of the secrets that were valid, in characters: some thousand people. */
const seenSizeMax = 100_000;

/** Attempts that fail are recorded and limited as those with keys are. */
export function authenticatingPeople({
  authenticate,
  sessions,
  onFailure,
  attempts,
}: PersonAuthentication): Authenticate {
  /** By their hash: failures of others at their address cannot delay these. */
  const seen = new LruCache<true>(seenSizeMax);

  async function refuse(
    origin: Origin,
    stored: RefusedConsoleSession | undefined,
    flaw?: KeyFlaw,
  ): Promise<never> {
    await onFailure(origin, stored, flaw);
    await attempts.count(origin.address);
    throw signedOut();
  }

  async function callerOf(key: string, origin: Origin): Promise<Caller> {
    const { secret, forgeryToken, application } = readConsoleKey(key) ?? noCredential;
    const hash = hashConsoleSecret(secret);
    const lookUp = () => sessions.lookUp(secret);
    const { standing, stored, flaw } = await (seen.get(hash)
      ? lookUp()
      : attempts.lookUp(origin.address, lookUp));
    if (!standing || !isForgeryToken(forgeryToken, secret)) return refuse(origin, stored, flaw);
    seen.set(hash, true);
    const id = parseUuid<ApplicationId>(application);
    try {
      const caller = id && (await sessions.callerAs(standing, id, origin));
      if (caller) return caller;
    } catch (error) {
      if (isIntegrityError(error)) return refuse(origin, stored, 'altered');
      throw error;
    }
    return refuse(origin, stored);
  }

  return (key, origin) =>
    key !== undefined && readConsoleKey(key) ? callerOf(key, origin) : authenticate(key, origin);
}

const noCredential = { secret: '', forgeryToken: '', application: '' };

/** The session, the person, or the application as which the person acts has ended. */
function signedOut(): VaultError {
  return new VaultError('unauthenticated', { public: 'You are not signed in, or no longer are.' });
}
