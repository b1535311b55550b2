/** What the placeholders in a request stand for, as far as its application and its policies know them. */
import { luhnValid } from '../../base/checks.ts';
import type { Instant } from '../../base/clock.ts';
import type { ApplicationId, TokenId } from '../../base/ids.ts';
import { createKeyedMutex } from '../../base/keyed-mutex.ts';
import { LruCache } from '../../base/lru-cache.ts';
import { createPause } from '../../base/pauses.ts';
import { sha256 } from '../../keys/digest.ts';
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

/** Of some ten applications: policies can name so many tokens that all of their numbers take several megabytes. */
const numbersKeptMax = 1_500;
/** By all that they are made of. Those of the longest policies take a quarter of a second. */
const numbersKept = new LruCache<NumberTargets>(numbersKeptMax);
/** Of each tenant one after the other: made at the same time, they would take hundreds of megabytes. */
const makingInTurn = createKeyedMutex();

async function numbersOf(holder: PlaceholderHolder): Promise<NumberTargets> {
  const { keyring, application, policies } = holder;
  const named = new Set(policies.flatMap(({ tokens = [] }) => tokens));
  const madeOf = sha256(JSON.stringify([keyring.id, application, ...named])).toString('base64url');
  const make = async () => {
    // A request before may have made them.
    const made = numbersKept.get(madeOf) ?? (await makeNumbers(holder, named));
    numbersKept.set(madeOf, made);
    return made;
  };
  return numbersKept.get(madeOf) ?? makingInTurn(keyring.id, make);
}

/** In steps, between which others have their turn. */
async function makeNumbers(
  { keyring, application }: PlaceholderHolder,
  named: ReadonlySet<TokenId>,
): Promise<NumberTargets> {
  const made = new Map<string, PlaceholderTarget>();
  const pause = createPause();
  for (const tokenId of named) {
    await pause();
    for (const property of properties) {
      const target = { tokenId, property };
      made.set(placeholderNumber(keyring, application, target), target);
    }
  }
  return made;
}

/** Those of digits, with a right check digit. */
function hasNumbers(text: string): boolean {
  return placeholdersIn(text).some((one) => isPlaceholderNumber(one.text) && luhnValid(one.text));
}

/** @param texts all those in which placeholders may be: no number that is in none of them is found. */
export async function findingPlaceholders(
  holder: PlaceholderHolder,
  texts: readonly string[],
): Promise<FindPlaceholder> {
  const { keyring, application, now } = holder;
  const numbers = texts.some(hasNumbers) ? await numbersOf(holder) : undefined;
  return (placeholder) => {
    if (isPlaceholderNumber(placeholder)) return numbers?.get(placeholder);
    const opened = openPlaceholder(keyring, application, placeholder);
    if (opened?.expiresAt !== undefined && opened.expiresAt <= now()) return undefined;
    return opened;
  };
}
