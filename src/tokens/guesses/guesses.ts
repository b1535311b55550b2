/**
 * Guessing a masked value: a masked card shows its BIN and its last four digits, and a fingerprint, a deduplicated
 * create, or a search would reveal which of the remaining digits are right. Attempts of callers without a server
 * key are therefore counted by what a mask shows. Fingerprints are computed only here.
 */

import { hour, type Instant } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { fingerprintOf } from '../../keys/digest.ts';
import { type Caller, isForVisitor } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Limiter } from '../../store/limiter.ts';
import type { Store } from '../../store/store.ts';
import { type Evaluated, fingerprintedText } from '../contents/sealed-row.ts';
import { visibleDigits, visibleInSearch } from './visible-digits.ts';

/** Attempts in an hour with the same visible digits that still get a result. */
export const equalDigitsMax = 20;

/** About 128 bits in base58, so that no two values share a count by accident. */
const nameLength = 22;

/** Bounds the memory: about 12 MB. A busy shop has 20,000 different cards an hour, of which each has two names. */
const keysMax = 100_000;

const limit = {
  name: 'equal digits',
  requests: equalDigitsMax,
  windowMs: hour,
  blockMs: 0,
  keysMax,
};

const limiters = new WeakMap<Store['limiter'], Limiter>();

function limiterOf({ limiter }: Pick<Store, 'limiter'>): Limiter {
  const known = limiters.get(limiter);
  if (known) return known;
  const made = limiter(limit);
  limiters.set(limiter, made);
  return made;
}

/** A fingerprint that was computed and that no caller learns of before it is counted. */
export class Guess {
  readonly #fingerprint: string;
  /** The fingerprints of the value under the other keys that live: stored tokens may have one of them. */
  readonly others: readonly string[];
  /** The one under which a deduplicated token claims its value, while two keys are written with. */
  readonly claim: string | undefined;
  /** The names that are counted; empty if the guess is not counted. */
  readonly names: readonly string[];
  #isCounted = false;
  #isWithheld = false;

  constructor({ fingerprint, others, claim }: ValueFingerprints, names: readonly string[]) {
    this.#fingerprint = fingerprint;
    this.others = others;
    this.claim = claim;
    this.names = names;
  }

  /** True once it was counted, after which it is not counted again. */
  get isCounted(): boolean {
    return this.#isCounted;
  }

  equals(fingerprint: string): boolean {
    return this.#fingerprint === fingerprint;
  }

  /** Called with the result of the count. */
  settle(isWithheld: boolean): void {
    this.#isCounted = true;
    this.#isWithheld = isWithheld;
  }

  /** The fingerprint; null where it is withheld, or was not counted. */
  get learned(): string | null {
    return this.#isCounted && !this.#isWithheld ? this.#fingerprint : null;
  }
}

interface ValueFingerprints extends Pick<Guess, 'others' | 'claim'> {
  /** Under the active key. */
  readonly fingerprint: string;
}

function fingerprintsOf({ keyring }: Tenant, type: string, text: string): ValueFingerprints {
  const [fingerprint = '', ...others] = keyring
    .livingSecrets('fingerprint')
    .map((secret) => fingerprintOf(secret, type, text));
  const claiming = others.length === 0 ? undefined : keyring.overlappedSecret('fingerprint');
  return { fingerprint, others, claim: claiming && fingerprintOf(claiming, type, text) };
}

/** By the request that tries: it is decided again after a conflict, and is one guess all the same. */
const guessesByRequest = new WeakMap<object, Guess>();

export interface GuessSource {
  /** The request, one object however often it is decided. */
  readonly request: object;
  /** The fingerprint that an earlier request disclosed; to repeat it is not a guess. */
  readonly disclosed?: string | undefined;
}

/** @throws VaultError `validation_failed` when the expression gives nothing to fingerprint. */
export function guessOf(
  caller: Caller,
  evaluated: Evaluated,
  { request, disclosed }: GuessSource,
): Guess {
  const { tenant } = caller;
  const { contents } = evaluated;
  const text = fingerprintedText(evaluated);
  const fingerprints = fingerprintsOf(tenant, contents.type, text);
  const { fingerprint, others } = fingerprints;
  if (!isForVisitor(caller)) return new Guess(fingerprints, []);
  const known = guessesByRequest.get(request);
  if (known?.equals(fingerprint)) return known;
  const isDisclosed = [fingerprint, ...others].some((one) => one === disclosed);
  const visible = isDisclosed ? [] : visibleDigits(contents, text);
  const guess = new Guess(
    fingerprints,
    visible.map((one) => nameOf(caller, one)),
  );
  guessesByRequest.set(request, guess);
  return guess;
}

/** The fingerprint under the active key, of a value that has one under an earlier key. It tells nothing new. */
export function currentFingerprint(
  { keyring }: Pick<Tenant, 'keyring'>,
  evaluated: Evaluated,
): string {
  const { type } = evaluated.contents;
  return fingerprintOf(keyring.secret('fingerprint'), type, fingerprintedText(evaluated));
}

/** The same in every thread and on every server of the tenant, and meaningless without its keys. */
function nameOf({ tenant }: Caller, visible: string): string {
  // No type of tokens has this name, so no fingerprint is ever the same.
  const key = tenant.keyring.secret('fingerprint');
  return fingerprintOf(key, 'visible digits', visible).slice(0, nameLength);
}

export interface Guessing {
  readonly store: Store;
  readonly now: Instant;
}

/**
 * Counts guesses, in their order, and decides for each whether its caller learns the result: at once if none has to
 * be counted. The first guess over the limit in an hour is logged at once, whatever becomes of the request.
 */
export function countGuesses(
  guessing: Guessing,
  caller: Caller,
  guesses: readonly Guess[],
): Promise<void> | undefined {
  const isToCount = guesses.some(({ isCounted, names }) => !isCounted && names.length > 0);
  if (isToCount) return countNamed(guessing, caller, guesses);
  for (const guess of guesses) if (!guess.isCounted) guess.settle(false);
  return undefined;
}

async function countNamed(
  guessing: Guessing,
  caller: Caller,
  guesses: readonly Guess[],
): Promise<void> {
  const fresh = [...new Set(guesses)].filter(({ isCounted }) => !isCounted);
  const named = fresh.flatMap((guess) => guess.names.map((name) => ({ guess, name })));
  const withheld = new Set<Guess>();
  const alerts = new Set<string | undefined>();
  const counts = [...Map.groupBy(named, ({ name }) => name)].map(async ([name, equal]) => {
    const { granted, isFirstRefusal } = await limiterOf(guessing.store).count(name, equal.length);
    for (const { guess } of equal.slice(granted)) withheld.add(guess);
    // Values that are equal go over the limit under all of their names at once.
    if (isFirstRefusal) alerts.add(equal[granted]?.guess.names[0]);
  });
  await Promise.all(counts);
  for (const _ of alerts) await alert(guessing, caller);
  for (const guess of fresh) guess.settle(withheld.has(guess));
}

/** Counts the guess. @returns the fingerprint where its caller may learn it; otherwise null. */
export async function learned(
  guessing: Guessing,
  caller: Caller,
  guess: Guess,
): Promise<string | null> {
  await countGuesses(guessing, caller, [guess]);
  return guess.learned;
}

/** @throws VaultError `too_many_requests` for a search that exceeds the limit of guesses. */
export async function countSearch(
  guessing: Guessing,
  caller: Caller,
  values: readonly string[],
): Promise<void> {
  if (!isForVisitor(caller)) return;
  for (const value of new Set(values)) {
    const names = visibleInSearch(value).map((visible) => nameOf(caller, visible));
    const limiter = limiterOf(guessing.store);
    const counts = await Promise.all(names.map((name) => limiter.count(name, 1)));
    if (counts.some(({ isFirstRefusal }) => isFirstRefusal)) await alert(guessing, caller);
    if (counts.some(({ granted }) => granted === 0)) throw tooManyGuesses('searched for');
  }
}

async function alert({ store, now }: Guessing, caller: Caller): Promise<void> {
  const fact = { entity: 'token', id: '*', operation: 'guess' } as const;
  await store.commit({ entries: [entryOf(caller, now, fact)] });
}

export function tooManyGuesses(what: 'created with an id that is made of them' | 'searched for') {
  return new VaultError('too_many_requests', {
    public: `At most ${equalDigitsMax} values that look alike when masked may be ${what} in an hour.`,
    headers: { 'retry-after': '3600' },
  });
}
