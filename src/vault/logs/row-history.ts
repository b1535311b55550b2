/** What the log says became of one row: which versions it had, which of them ended, and who spoke last. */
import type { Instant } from '../../lib/clock.ts';
import type { Mark } from '../../store/row-states.ts';

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

/**
 * Streams are read one after the other, so entries about one row arrive in any order, and clocks of
 * servers differ. Versions do not: each that is followed by another, or by the end of the row, is over,
 * and what is left is the row as it must be. Times decide only between lives of one id, which all begin
 * with version 1.
 */
export class RowHistory {
  /** Versions whose end was not seen yet. */
  readonly #open: StatedVersion[] = [];
  /** Ends of versions that were not seen yet. */
  readonly #ended: EndedVersion[] = [];
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

  /** The row as it must be; none when it must be gone. More than one only where times do not decide. */
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

  /** A version and an end that surely came after it are forgotten together. */
  #begin(begun: StatedVersion): void {
    const end = this.#ended.findIndex((ended) => belong(begun, ended));
    if (end === -1) this.#open.push(begun);
    else this.#ended.splice(end, 1);
  }

  #end(ended: EndedVersion): void {
    const begun = this.#open.findLastIndex((one) => belong(one, ended));
    if (begun === -1) this.#ended.push(ended);
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
