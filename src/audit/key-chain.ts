/**
 * Which keys may sign for a log: each key introduces the one that replaces it, and names those that it has replaced. So
 * a verifier that knows one of them finds the others, and an attacker who has none of the private keys adds none.
 */
import type { Instant } from '../base/clock.ts';
import { type OpenedCheckpoint, replacedMsMax } from './checkpoint-trail.ts';

/**
 * The known keys, and those that follow from them.
 * @param checkpoints of one tenant, whose own signatures were checked; those of other keys have no effect.
 */
export function trustedKeysOf(
  known: Iterable<string>,
  checkpoints: readonly OpenedCheckpoint[],
): ReadonlySet<string> {
  return followed(known, linksIn(checkpoints));
}

/** The key that signed something outside the log, and when. */
export interface LooseSignature {
  readonly key: string;
  readonly at: Instant;
}

/**
 * Whether the signature counts for whoever knows these keys. What stands alone is not part of a chain that shows when
 * it was signed. So a key vouches for the one that it introduces, and for none that it has replaced: whoever stole an
 * old key could add any later checkpoint in which the new key names it. Where a successor is known, its key is over.
 *
 * @param known in the order in which they sign. The last one says that the others are over: a thief of one of them
 * leaves out what would show it, so that they count for nothing.
 * @param checkpoints as in {@link trustedKeysOf}.
 */
export function signsFor(
  known: readonly string[],
  checkpoints: readonly OpenedCheckpoint[],
  { key, at }: LooseSignature,
): boolean {
  const introductions = checkpoints.flatMap(({ signed, checkpoint: { introduces } }) =>
    introduces === undefined ? [] : [{ key: signed.public_key, others: [introduces] }],
  );
  const trusted = followed(known.slice(-1), introductions);
  const isOver = checkpoints.some(
    ({ signed: { public_key: by }, checkpoint: { introduces, succeeds, created_at } }) =>
      trusted.has(by) &&
      (by === key ? introduces !== undefined : succeeds?.includes(key)) &&
      at > created_at + replacedMsMax,
  );
  return trusted.has(key) && !isOver;
}

function followed(known: Iterable<string>, links: readonly KeyLink[]): ReadonlySet<string> {
  const trusted = new Set(known);
  for (let size = -1; size !== trusted.size; ) {
    size = trusted.size;
    for (const { key, others } of links) {
      if (trusted.has(key)) for (const other of others) trusted.add(other);
    }
  }
  return trusted;
}

interface KeyLink {
  readonly key: string;
  readonly others: readonly string[];
}

/** Every checkpoint of a key names the same keys before it, so that only few links differ. */
function linksIn(checkpoints: readonly OpenedCheckpoint[]): readonly KeyLink[] {
  const links = new Map<string, KeyLink>();
  for (const { signed, checkpoint } of checkpoints) {
    const { introduces, succeeds = [] } = checkpoint;
    const others = introduces === undefined ? succeeds : [...succeeds, introduces];
    if (others.length === 0) continue;
    links.set([signed.public_key, ...others].join(), { key: signed.public_key, others });
  }
  return [...links.values()];
}
