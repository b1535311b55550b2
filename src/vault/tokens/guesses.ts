/**
 * Guessing a masked value: a masked card shows its BIN and its last four digits, and a fingerprint or a deduplicated
 * create would tell which of the remaining digits are right. Creates by keys that visitors hold are therefore
 * counted by what a mask shows.
 */
import { fingerprintOf } from '../../crypto/digest.ts';
import { hour, type Instant } from '../../lib/clock.ts';
import { VaultError } from '../../lib/errors.ts';
import type { LogEntry } from '../../lib/log-chain/entries.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Limiter } from '../../store/limiter.ts';
import type { Store } from '../../store/store.ts';
import type { PreparedToken } from './prepare.ts';

/** Creates in an hour whose visible digits are the same and that still say what they found. */
const equalDigitsMax = 20;

/** So many characters of a digest tell digits apart, which bounds what is remembered of a tenant. */
const nameLength = 3;

interface Limiters {
  readonly guesses: Limiter;
  /** Counts the alerts, of which there is one. */
  readonly alerts: Limiter;
}

const limitersByStore = new WeakMap<Store['limiter'], Limiters>();

function limitersOf({ limiter }: Pick<Store, 'limiter'>): Limiters {
  const known = limitersByStore.get(limiter);
  if (known) return known;
  const window = { windowMs: hour, blockMs: 0 };
  const made = {
    guesses: limiter({ name: 'equal digits', requests: equalDigitsMax, ...window }),
    alerts: limiter({ name: 'equal digits alert', requests: 1, ...window }),
  };
  limitersByStore.set(limiter, made);
  return made;
}

export interface CheckedGuess {
  readonly token: PreparedToken;
  /** Of the first create beyond the limit in an hour. */
  readonly alert: LogEntry | undefined;
}

/**
 * The token as it may be created: beyond the limit as one of its own, without a fingerprint, so that nothing tells
 * whether its value is stored already.
 * @throws VaultError `too_many_requests` where an id is made of the data, whose conflict would tell.
 */
export async function checkGuess(
  store: Store,
  caller: Caller,
  token: PreparedToken,
  now: Instant,
): Promise<CheckedGuess> {
  const { digits } = token;
  if (digits === undefined) return { token, alert: undefined };
  const { tenant } = caller;
  const digest = fingerprintOf(tenant.keyring.secret('row'), 'visible digits', digits);
  const name = `${tenant.id} ${digest.slice(0, nameLength)}`;
  const { guesses, alerts } = limitersOf(store);
  if ((await guesses.count(name)).allowed) return { token, alert: undefined };
  const isFirst = (await alerts.count(name)).allowed;
  const fact = { entity: 'token', id: '*', operation: 'guess' } as const;
  if (token.hasOwnId) throw tooManyGuesses();
  return {
    token: { ...token, deduplicates: false, fingerprint: null, isReticent: true },
    alert: isFirst ? entryOf(caller, now, fact) : undefined,
  };
}

function tooManyGuesses(): VaultError {
  return new VaultError('too_many_requests', {
    public:
      `At most ${equalDigitsMax} tokens whose values look alike when masked may be created in an hour with an id ` +
      'that is made of the data.',
    headers: { 'retry-after': '3600' },
  });
}
