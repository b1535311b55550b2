/** What the placeholders in a request stand for, as far as its application and its policies know them. */
import { luhnValid } from '../../base/checks.ts';
import type { Instant } from '../../base/clock.ts';
import type { ApplicationId } from '../../base/ids.ts';
import { LruCache } from '../../base/lru-cache.ts';
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
  readonly now: Instant;
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

function numbersOf({ keyring, application, policies }: PlaceholderHolder): NumberTargets {
  const named = new Set(policies.flatMap(({ tokens = [] }) => tokens));
  const madeOf = sha256(JSON.stringify([keyring.id, application, ...named])).toString('base64url');
  const known = numbersKept.get(madeOf);
  if (known) return known;
  const targets = [...named].flatMap((tokenId) =>
    properties.map((property): PlaceholderTarget => ({ tokenId, property })),
  );
  const made = new Map(targets.map((one) => [placeholderNumber(keyring, application, one), one]));
  numbersKept.set(madeOf, made);
  return made;
}

export function findingPlaceholders(holder: PlaceholderHolder): FindPlaceholder {
  const { keyring, application, now } = holder;
  let numbers: NumberTargets | undefined;
  return (placeholder) => {
    if (isPlaceholderNumber(placeholder)) {
      if (!luhnValid(placeholder)) return undefined;
      numbers ??= numbersOf(holder);
      return numbers.get(placeholder);
    }
    const opened = openPlaceholder(keyring, application, placeholder);
    if (opened?.expiresAt !== undefined && opened.expiresAt <= now) return undefined;
    return opened;
  };
}
