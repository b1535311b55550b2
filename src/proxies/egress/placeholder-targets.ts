/** What the placeholders in a request stand for, as far as its application and its policies know them. */
import { luhnValid } from '../../base/checks.ts';
import type { Instant } from '../../base/clock.ts';
import type { ApplicationId } from '../../base/ids.ts';
import { LruCache } from '../../base/lru-cache.ts';
import { createPause } from '../../base/pauses.ts';
import type { Keyring } from '../../keys/keyring.ts';
import {
  isPlaceholderNumber,
  openPlaceholder,
  type PlaceholderTarget,
  placeholderNumber,
  placeholderPattern,
} from '../../keys/placeholder.ts';
import type { EgressPolicy } from '../../rules/egress-policies.ts';
import { tokenTypes } from '../../tokens/contents/token-types.ts';

export interface PlaceholderHolder {
  readonly keyring: Keyring;
  readonly application: ApplicationId;
  /** All of the application: tokens that they name by id can have a placeholder of digits. */
  readonly policies: readonly EgressPolicy[];
  /** Asked for each placeholder: numbers may have taken a while. */
  readonly now: () => Instant;
}

/** `undefined` for one that is unknown, of another application or tenant, or has ended. */
export type FindPlaceholder = (placeholder: string) => PlaceholderTarget | undefined;

/** All parts of a text that have the form of a placeholder. */
export function placeholdersIn(
  text: string,
): readonly { readonly index: number; readonly text: string }[] {
  if (!text.includes('sr_') && !text.includes('9999')) return [];
  return Array.from(text.matchAll(placeholderPattern), ({ 0: found, index }) => ({
    index,
    text: found,
  }));
}

/** Whether there is anything that has the form of a placeholder. */
export function hasPlaceholders(text: string): boolean {
  return /sr_[1-9A-HJ-NP-Za-km-z]{20}|9999[0-9]{12}/.test(text);
}

/** The properties of which there can be a number. */
const properties = [
  undefined,
  ...new Set([...tokenTypes.card.properties, ...tokenTypes.bank.properties]),
];

type NumberTargets = ReadonlyMap<string, PlaceholderTarget>;

/** Characters of the names of targets that are remembered of a tenant: more than a thousand targets. */
const knownSizeMax = 200_000;
/** Of each tenant, so that none makes another one search again. */
const knownTargets = new WeakMap<Keyring, LruCache<PlaceholderTarget>>();

function knownOf(keyring: Keyring): LruCache<PlaceholderTarget> {
  const known = knownTargets.get(keyring) ?? new LruCache<PlaceholderTarget>(knownSizeMax);
  knownTargets.set(keyring, known);
  return known;
}

/**
 * Searches for numbers. Where policies name thousands of tokens, this takes a quarter of a second: it is done in steps,
 * for which the caller pays, and nobody waits for the search of another one.
 */
async function targetsOf(
  { keyring, application, policies }: PlaceholderHolder,
  numbers: readonly string[],
): Promise<NumberTargets> {
  const named = new Set(policies.flatMap(({ tokens = [] }) => tokens));
  const known = knownOf(keyring);
  const nameOf = (number: string) => `${application} ${number}`;
  const found = new Map<string, PlaceholderTarget>();
  const sought = new Set<string>();
  for (const number of numbers) {
    const target = known.get(nameOf(number));
    if (target && named.has(target.tokenId)) found.set(number, target);
    else sought.add(number);
  }
  const pause = createPause();
  for (const tokenId of named) {
    if (sought.size === 0) break;
    await pause();
    for (const property of properties) {
      const target = { tokenId, property };
      const number = placeholderNumber(keyring, application, target);
      if (!sought.delete(number)) continue;
      found.set(number, target);
      known.set(nameOf(number), target);
    }
  }
  return found;
}

/** Those of digits, with a right check digit. */
function numbersIn(text: string): readonly string[] {
  return placeholdersIn(text)
    .map((one) => one.text)
    .filter((one) => isPlaceholderNumber(one) && luhnValid(one));
}

/** @param texts all those in which placeholders may be: no number that is in none of them is found. */
export async function findingPlaceholders(
  holder: PlaceholderHolder,
  texts: readonly string[],
): Promise<FindPlaceholder> {
  const { keyring, application, now } = holder;
  const sought = texts.flatMap(numbersIn);
  const numbers = sought.length > 0 ? await targetsOf(holder, sought) : undefined;
  return (placeholder) => {
    if (isPlaceholderNumber(placeholder)) return numbers?.get(placeholder);
    const opened = openPlaceholder(keyring, application, placeholder);
    if (opened?.expiresAt !== undefined && opened.expiresAt <= now()) return undefined;
    return opened;
  };
}
