/** Failed authentication is limited by address. The limit does not affect callers with a valid key. */
import { isDeepStrictEqual } from 'node:util';
import { type Clock, second } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import { createKeyedMutex } from '../base/keyed-mutex.ts';
import { networkOf } from '../base/network.ts';
import { WindowCounter, type WindowState } from '../base/window-counter.ts';

export interface FailureLimit {
  readonly requests: number;
  readonly windowMs: number;
}

/** Networks that are counted apart in one window; those that come after them share a counter. */
export const networksMax = 10_000;
/** Unknown keys from one network that is over its limit that wait to be looked up, one at a time. */
export const lookUpsWaitingMax = 100;

export interface FailedAttempts {
  /** Rejects with `too_many_requests` when it is one too many. */
  count(address: string): Promise<void>;
  /**
   * Runs the look-up of a key that this server has not seen to be valid.
   * @throws VaultError `too_many_requests` when too many wait.
   */
  lookUp<R>(address: string, task: () => Promise<R>): Promise<R>;
}

/** Attempts under a limit that can change while they are counted. */
export interface AdjustableAttempts extends FailedAttempts {
  /** An equal limit goes on counting; another one begins at zero. */
  setLimit(limit: FailureLimit | undefined): void;
}

export const unlimitedAttempts: FailedAttempts = {
  count: async () => undefined,
  lookUp: (_address, task) => task(),
};

/**
 * An attempt can only be known to fail once its key was looked up, and behind one address there may
 * be others with valid keys. So an address over its limit may still try, but one key at a time.
 */
export function createFailedAttempts(
  limit: FailureLimit | undefined,
  clock: Clock,
): AdjustableAttempts {
  let inForce = limit;
  let current = attemptsUnder(limit, clock);
  return {
    count: (address) => current.count(address),
    lookUp: (address, task) => current.lookUp(address, task),
    setLimit: (next) => {
      if (isDeepStrictEqual(next, inForce)) return;
      inForce = next;
      current = attemptsUnder(next, clock);
    },
  };
}

function attemptsUnder(limit: FailureLimit | undefined, clock: Clock): FailedAttempts {
  if (limit === undefined) return unlimitedAttempts;
  const failures = new WindowCounter(
    { ...limit, blockMs: 0, keysMax: networksMax, sharesOverflow: true },
    () => clock.now(),
  );
  const inTurn = createKeyedMutex();
  const waiting = new Map<string, number>();

  return {
    count: async (address) => {
      const state = failures.count(networkOf(address));
      if (!state.allowed) throw tooMany(state);
    },
    lookUp: async (address, task) => {
      const network = failures.countedAs(networkOf(address));
      const state = failures.peek(network);
      if (state.allowed) return task();
      const ahead = waiting.get(network) ?? 0;
      if (ahead >= lookUpsWaitingMax) throw tooMany(state);
      waiting.set(network, ahead + 1);
      try {
        return await inTurn(network, task);
      } finally {
        const left = (waiting.get(network) ?? 1) - 1;
        if (left > 0) waiting.set(network, left);
        else waiting.delete(network);
      }
    },
  };
}

function tooMany({ resetMs }: WindowState): VaultError {
  const seconds = Math.max(1, Math.ceil(resetMs / second));
  return new VaultError('too_many_requests', {
    public: `Too many requests without a valid API key; try again in ${seconds} s.`,
    headers: { 'retry-after': String(seconds) },
  });
}
