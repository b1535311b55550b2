/** The history of one row according to the log: its versions, which of them ended, and the last entry about it. */
import { hour, type Instant } from '../base/clock.ts';
import type { Mark } from '../store/row-states.ts';

/** An entry, as far as it is named to people. */
export interface EntryPlace {
  readonly at: Instant;
  readonly stream: string;
  readonly seq: number;
}

/** A version of the row, and the entry that made it. */
export interface StatedVersion extends Pick<Mark, 'version' | 'authenticator'> {
  readonly place: EntryPlace;
}

interface EndedVersion {
  readonly version: number;
  readonly place: EntryPlace;
}

/** Shared by all histories, and never written to. */
const none: never[] = [];

/** Most rows have one version, and `push` reserves room for seventeen. */
function added<T>(list: T[], ...more: readonly T[]): T[] {
  if (list.length === 0) return [...more];
  list.push(...more);
  return list;
}

/** The clocks of servers may differ by this much. */
const skewMsMax = hour;

/**
 * Streams are read one after the other, so entries about one row arrive in any order, and clocks of
 * servers differ. Versions are exact: a version followed by another, or by the removal of the row, has ended,
 * and the remaining one is the row as it must be. Times decide only between lives of one id, which all begin
 * with version 1.
 */
export class RowHistory {
  /** Versions whose end has not been read yet. */
  #open: StatedVersion[] = none;
  /** Ends of versions that were not seen yet. */
  #ended: EndedVersion[] = none;
  /** When versions began and ended, as numbers in turn, which take least: the version, and the time. */
  #begins: number[] = none;
  #ends: number[] = none;
  #last: EntryPlace;
  #lastIsOwn = false;

  constructor(first: EntryPlace) {
    this.#last = first;
  }

  /** The entry that last spoke of the row; one about the row itself, where there is one. */
  get last(): EntryPlace {
    return this.#last;
  }

  take({ sign, version, authenticator, isOwn }: Mark, place: EntryPlace): void {
    if (isOwn === this.#lastIsOwn ? place.at >= this.#last.at : isOwn) this.#last = place;
    this.#lastIsOwn ||= isOwn;
    if (sign !== '+') this.#end({ version: sign === '-' ? version : version - 1, place });
    if (sign !== '-') this.#begin({ version, authenticator, place });
  }

  /** The row as it must be; empty if it must be gone. More than one only if times do not decide. */
  standing(): readonly StatedVersion[] {
    return [...new Set(this.#open.map(({ version }) => version))].flatMap((version) => {
      const begun = this.#open
        .filter((one) => one.version === version)
        .toSorted((one, two) => two.place.at - one.place.at);
      const over = this.#ended.filter((one) => one.version === version).length;
      const oldest = begun[begun.length - over - 1];
      return oldest ? begun.filter(({ place }) => place.at >= oldest.place.at) : [];
    });
  }

  /**
   * How the row was altered outside the vault before the vault wrote it again, whatever it is now. The vault ends only
   * a version that exists, so a version that ended without having begun was put back. The vault begins only a row that
   * does not exist, so a row that began while another existed had been removed.
   *
   * @param horizon entries before it may be gone; 0 if none is.
   */
  overwritten(horizon: Instant): 'restored' | 'missing' | undefined {
    const from = horizon === 0 ? 0 : horizon + skewMsMax;
    const [begins, ends] = [timesByVersion(this.#begins, from), timesByVersion(this.#ends, from)];
    let oldest = never;
    for (const [first = never] of [...begins.values(), ...ends.values()]) {
      oldest = Math.min(oldest, first);
    }
    /** The first to end may have begun before the horizon. */
    let isBeyond = horizon > 0;
    let open = 0;
    for (const version of new Set([...begins.keys(), ...ends.keys()])) {
      const begun = begins.get(version) ?? [];
      let ended = ends.get(version) ?? [];
      const [first = never] = ended;
      if (isBeyond && first <= oldest + skewMsMax && disorderOf(begun, ended)) {
        ended = ended.slice(1);
        isBeyond = false;
      }
      const disorder = disorderOf(begun, ended);
      if (disorder) return disorder;
      open += begun.length - ended.length;
    }
    return open > 1 ? 'missing' : undefined;
  }

  /** A version and an end that surely came after it are forgotten together. */
  #begin(begun: StatedVersion): void {
    this.#begins = added(this.#begins, begun.version, begun.place.at);
    const end = this.#ended.findIndex((ended) => belong(begun, ended));
    if (end === -1) this.#open = added(this.#open, begun);
    else this.#ended.splice(end, 1);
  }

  #end(ended: EndedVersion): void {
    this.#ends = added(this.#ends, ended.version, ended.place.at);
    const begun = this.#open.findLastIndex((one) => belong(one, ended));
    if (begun === -1) this.#ended = added(this.#ended, ended);
    else this.#open.splice(begun, 1);
  }
}

function belong(
  { version, place: begun }: StatedVersion,
  { version: ended, place: end }: EndedVersion,
): boolean {
  if (version !== ended) return false;
  return begun.at < end.at || (begun.stream === end.stream && begun.seq <= end.seq);
}

/** In ascending order, those after an instant. */
function timesByVersion(recorded: readonly number[], from: number): Map<number, number[]> {
  const times = new Map<number, number[]>();
  for (let at = 0; at < recorded.length; at += 2) {
    const [version = 0, time = 0] = recorded.slice(at, at + 2);
    if (time <= from) continue;
    const known = times.get(version);
    if (known) known.push(time);
    else times.set(version, [time]);
  }
  for (const one of times.values()) one.sort((a, b) => a - b);
  return times;
}

const never = Number.POSITIVE_INFINITY;

/** What keeps these from being the times of lives of which each began after the one before had ended. */
function disorderOf(begun: readonly number[], ended: readonly number[]) {
  for (const [life, end] of ended.entries()) {
    const [begin = never, next = never] = begun.slice(life, life + 2);
    if (begin > end + skewMsMax) return 'restored';
    if (end > next + skewMsMax) return 'missing';
  }
  return undefined;
}
