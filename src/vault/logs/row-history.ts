/** What the log says became of one row: which versions it had, which of them ended, and who spoke last. */
import type { Instant } from '../../lib/clock.ts';
import type { Mark } from '../../store/row-states.ts';

/** An entry, as far as it is named to people. */
export interface Place {
  readonly at: Instant;
  readonly stream: string;
  readonly seq: number;
}

/** A version of the row, and the entry that made it. */
export interface Spoken extends Pick<Mark, 'version' | 'authenticator'> {
  readonly place: Place;
}

interface Ended {
  readonly version: number;
  readonly at: Instant;
}

/**
 * Streams are read one after the other, so entries about one row arrive in any order, and clocks of
 * servers differ. Versions do not: each that is followed by another, or by the end of the row, is over,
 * and what is left is the row as it must be. Times decide only between lives of one id that begins anew.
 */
export class RowHistory {
  /** Versions whose end was not seen yet. */
  #open: Spoken[] = [];
  /** Ends of versions that were not seen yet. */
  #ended: Ended[] = [];
  #last: Place;

  constructor(first: Place) {
    this.#last = first;
  }

  /** The entry that last spoke of the row. */
  get last(): Place {
    return this.#last;
  }

  take({ sign, version, authenticator }: Mark, place: Place): void {
    if (place.at >= this.#last.at) this.#last = place;
    if (sign !== '-') this.#open.push({ version, authenticator, place });
    if (sign !== '+') {
      this.#ended.push({ version: sign === '-' ? version : version - 1, at: place.at });
    }
    this.#settle((spoken, ended) => spoken.place.at <= ended.at);
  }

  /** The row as it must be; none when it must be gone. More than one only where times do not decide. */
  standing(): readonly Spoken[] {
    this.#settle(() => true);
    const newest = Math.max(...this.#open.map(({ place }) => place.at));
    return this.#open.filter(({ place }) => place.at === newest);
  }

  /** Forgets versions together with their ends. */
  #settle(fits: (spoken: Spoken, ended: Ended) => boolean): void {
    this.#ended = this.#ended.filter((ended) => {
      const over = this.#open.findLastIndex(
        (spoken) => spoken.version === ended.version && fits(spoken, ended),
      );
      if (over === -1) return true;
      this.#open.splice(over, 1);
      return false;
    });
  }
}
