/**
 * Requests that wait for slow clients, and which of them give room back. A client can be slow for as long as it
 * likes. If the room that several parties share is used up, the party with most of it loses the requests with the
 * least progress.
 */
import type { AdmittedEntrant, Party, RoomNeeded } from './admission.ts';
import { LinkedList, type ListLink } from './linked-list.ts';

export interface SlowClient {
  /** Whether the request waits only for its client. */
  isWaitedFor(): boolean;
  /** Bytes that the client has sent or received of this request. */
  bytesMoved(admitted: AdmittedEntrant): number;
  /** Ends the request, and its connection with it. */
  cut(): void;
}

/** A client counts as slow only after this time. */
const slowMsMin = 500;
/** A client that transfers this many bytes in a second makes progress. */
const progressBytesMin = 8_192;
/**
 * Requests that make progress are cut only if their party has this many times what the other party would then have.
 */
const progressFactor = 4;
/** Requests that one search examines. The next search begins where this one ended. */
const looksMax = 2_048;
const cutsMax = 16;
/** A search without a result is not repeated for this time, except for parties that have less. */
const fruitlessMs = 20;

export interface Watched {
  readonly admitted: AdmittedEntrant;
  readonly client: SlowClient;
  link: ListLink<Watched> | undefined;
  isCut: boolean;
}

/** A request that may be cut, and the criteria for choosing between several. */
interface Candidate {
  readonly watched: Watched;
  /** The request's branch of the tree, a sibling of the branch that needs room. */
  readonly part: Party;
  /** What that branch may keep when the other party gets room. */
  readonly keeps: number;
  readonly isOfLimitedPart: boolean;
  readonly isProgressing: boolean;
}

export class SlowClients {
  readonly #now: () => number;
  readonly #watched = new LinkedList<Watched>();
  readonly #fruitless = new Map<Party, { readonly has: number; readonly until: number }>();

  /** @param now a monotonic clock in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** @returns a handle that {@link unwatch} takes when the request ends. */
  watch(admitted: AdmittedEntrant, client: SlowClient): Watched {
    const watched: Watched = { admitted, client, link: undefined, isCut: false };
    watched.link = this.#watched.add(watched);
    return watched;
  }

  unwatch({ link }: Watched): void {
    if (link) this.#watched.remove(link);
  }

  /** Cuts as many requests as necessary. @returns false if none may be cut. */
  readonly reclaim = ({ party, full, what, amount }: RoomNeeded): boolean => {
    const now = this.#now();
    const fruitless = this.#fruitless.get(full);
    if (fruitless && now < fruitless.until && party[what] >= fruitless.has) return false;
    const { candidates, cutAlready } = this.#candidatesFor({ party, full, what, amount }, now);
    candidates.sort(byPriority(what));
    let missing = what === 'held' ? full.held + amount - full.heldMax : amount - cutAlready;
    const taken = new Map<Party, number>();
    let cuts = 0;
    for (const { watched, part, keeps } of candidates) {
      if (missing <= 0 || cuts === cutsMax) break;
      const given = what === 'held' ? watched.admitted.held : 1;
      const before = taken.get(part) ?? 0;
      if (part[what] - (what === 'held' ? 0 : before) <= keeps) continue;
      taken.set(part, before + given);
      missing -= given;
      cuts += 1;
      watched.isCut = true;
      watched.admitted.giveBack();
      watched.client.cut();
    }
    if (cuts === 0 && cutAlready === 0) {
      this.#fruitless.set(full, { has: party[what], until: now + fruitlessMs });
    } else this.#fruitless.delete(full);
    return cuts > 0;
  };

  #candidatesFor(needed: RoomNeeded, now: number) {
    const candidates: Candidate[] = [];
    const towards = pathTo(needed);
    const looks = Math.min(looksMax, this.#watched.size);
    let cutAlready = 0;
    for (let look = 0; look < looks; look += 1) {
      const watched = this.#watched.first as Watched;
      this.unwatch(watched);
      watched.link = this.#watched.add(watched);
      const parts = competingParts(watched.admitted.party, towards);
      if (!parts) continue;
      if (watched.isCut) cutAlready += 1;
      else if (now - watched.admitted.since >= slowMsMin) {
        const candidate = candidateOf(watched, { ...needed, ...parts, now });
        if (candidate) candidates.push(candidate);
      }
    }
    return { candidates, cutAlready };
  }
}

/** Each party on the path from the full one to the one that needs room, by its parent. */
function pathTo({ party, full }: RoomNeeded): ReadonlyMap<Party, Party> {
  const path = new Map<Party, Party>();
  for (let one = party; one !== full && one.parent; one = one.parent) path.set(one.parent, one);
  return path;
}

interface CompetingParts {
  /** Two siblings: the branch of the request, and the branch of the party that needs room. */
  readonly part: Party;
  readonly other: Party;
}

/** `undefined` if the request is not below the full party, or belongs to the party that needs room. */
function competingParts(
  party: Party,
  towards: ReadonlyMap<Party, Party>,
): CompetingParts | undefined {
  for (let one = party; one.parent; one = one.parent) {
    const other = towards.get(one.parent);
    if (other) return other === one ? undefined : { part: one, other };
  }
  return undefined;
}

function candidateOf(
  watched: Watched,
  { what, amount, part, other, now }: RoomNeeded & CompetingParts & { readonly now: number },
): Candidate | undefined {
  const { admitted, client } = watched;
  // Parties that are limited to a share of all time never take room from others, and others take precedence over
  // them.
  if (other.partMax < part.partMax) return undefined;
  if (what === 'held' && admitted.held === 0) return undefined;
  if (!client.isWaitedFor()) return undefined;
  const isOfLimitedPart = part.partMax < other.partMax;
  const seconds = (now - admitted.since) / 1_000;
  const isProgressing = client.bytesMoved(admitted) >= progressBytesMin * seconds;
  const one = what === 'held' ? amount : 1;
  const keeps = isProgressing ? progressFactor * (other[what] + one) : other[what];
  if (!isOfLimitedPart && part[what] <= keeps) return undefined;
  return {
    ...{ watched, part, isOfLimitedPart, isProgressing },
    keeps: isOfLimitedPart ? 0 : keeps,
  };
}

/**
 * Requests of limited branches come first, then requests without progress, then those of the branch and the party
 * with the most room.
 */
function byPriority(what: RoomNeeded['what']) {
  return (a: Candidate, b: Candidate): number =>
    Number(b.isOfLimitedPart) - Number(a.isOfLimitedPart) ||
    b.part[what] - a.part[what] ||
    b.watched.admitted.party[what] - a.watched.admitted.party[what] ||
    Number(a.isProgressing) - Number(b.isProgressing) ||
    a.watched.admitted.since - b.watched.admitted.since;
}
