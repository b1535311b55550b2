/** Refusals: the effect of a request that lacks a permission, or names something that does not exist. */
import type { Clock, Instant } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import { type AttemptedRoute, attemptOf } from './attempted-route.ts';
import type { Caller } from './caller.ts';
import {
  type AttemptedOperation,
  alteredEntry,
  denialOf,
  detailed,
  failureOf,
} from './log-entries.ts';
import type { Decide, Effect, Refused } from './operation.ts';
import type { Permission } from './permissions.ts';
import type { Reply } from './reply.ts';

export interface Refusal {
  readonly entity: string;
  /** `*` where no entity was named. */
  readonly id: string;
  readonly permission: Permission;
}

/** The effect of a refused request: its entry in the log, and a 403 that says which permission it lacks. */
export function refuse(caller: Caller, at: Instant, { entity, id, permission }: Refusal): Refused {
  const operation = permission.slice(permission.lastIndexOf(':') + 1);
  return deny(caller, at, { entity, id, operation }, lacksPermission(permission));
}

/** The effect of a request that is refused for another reason than a permission. */
export function forbid(
  caller: Caller,
  at: Instant,
  { message, ...denial }: AttemptedOperation & { readonly message: string },
): Refused {
  return deny(caller, at, denial, new VaultError('forbidden', { public: message }));
}

/** The effect of a refused request: its entry in the log, and the refusal. */
export function deny(
  caller: Caller,
  at: Instant,
  denial: AttemptedOperation,
  refusal: VaultError,
): Refused {
  return { change: { entries: [denialOf(caller, at, denial)] }, refusal };
}

export function lacksPermission(permission: Permission): VaultError {
  return new VaultError('forbidden', {
    public: `The key lacks the permission ${permission} here.`,
  });
}

/**
 * Records failures in the log, including `not_found`, so that the log shows callers who try ids that do not exist.
 * The requested id is omitted, because it may be a value in the wrong place. A row that was altered outside the vault
 * is named: it exists, and an operator has to examine it.
 */
export function loggingFailures<R = Reply>(
  decide: Decide<R>,
  { caller, clock, route }: { caller: Caller; clock: Clock; route: AttemptedRoute },
): Decide<R> {
  function refusedAfter(error: unknown): Refused {
    if (!(error instanceof VaultError)) throw error;
    const attempt = attemptOf(route);
    const { altered } = error;
    if (altered) {
      const entry = alteredEntry(caller, clock.now(), {
        ...altered,
        operation: attempt.operation,
      });
      return { change: { entries: [entry] }, refusal: error };
    }
    if (error.code !== 'not_found') throw error;
    return {
      change: { entries: [failureOf(caller, clock.now(), attempt)] },
      refusal: error,
    };
  }

  return (conflict) => decide(conflict).catch(refusedAfter);
}

/** True for the error of a key or a proxy that has ended, or that no longer permits the operation. */
export function isEnded(error: unknown): error is VaultError {
  return (
    error instanceof VaultError && /^(?:unauthenticated|forbidden|not_found)$/.test(error.code)
  );
}

export interface StandingRequest {
  readonly caller: Caller;
  readonly clock: Clock;
  readonly route: AttemptedRoute;
  /** Rejects like admission if the key or the proxy of the request has ended. */
  readonly stands: () => Promise<unknown>;
}

/**
 * A call of another host, or the code that decides about its outcome, may outlive the key. After the key has ended,
 * no result of the call is stored or given to the caller. The idempotency key stays taken, because the call was made.
 */
export function whileStanding<R = Reply>(
  decide: Decide<R>,
  { caller, clock, route, stands }: StandingRequest,
): Decide<R> {
  return async (conflict): Promise<Effect<R>> => {
    const effect = await decide(conflict);
    if (!('reachOut' in effect)) return effect;
    const reachOut: typeof effect.reachOut = async () => {
      const outcome = await effect.reachOut();
      return async (failed) => {
        const decided = await outcome(failed);
        try {
          await stands();
        } catch (error) {
          if (!isEnded(error)) throw error;
          const entry = failureOf(caller, clock.now(), attemptOf(route));
          const basis = error.code === 'not_found' || caller.anonymous ? 'proxy' : 'key';
          const why = `its ${basis} ended while another host was called`;
          return { change: { entries: [detailed(entry, why)] }, refusal: error, keepsKey: true };
        }
        return decided;
      };
    };
    return { ...effect, reachOut };
  };
}
