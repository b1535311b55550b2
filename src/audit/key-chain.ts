/**
 * Which keys may sign for a log: each key introduces the one that replaces it, and names those that it has replaced. So
 * a verifier that knows one of them finds the others, and an attacker who has none of the private keys adds none.
 */
import type { OpenedCheckpoint } from './checkpoint-trail.ts';

/**
 * The known keys, and those that follow from them.
 * @param checkpoints of one tenant, whose own signatures were checked; those of other keys have no effect.
 */
export function trustedKeysOf(
  known: Iterable<string>,
  checkpoints: readonly OpenedCheckpoint[],
): ReadonlySet<string> {
  const trusted = new Set(known);
  const links = linksIn(checkpoints);
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
