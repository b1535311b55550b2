/** The server that receives this process's writes, with its promotion and its data. All threads share it. */
import type { Epochs } from '../../base/epochs.ts';
import { hostsMax } from './hosts.ts';

/** A place for each host, and one for "none". */
const places = hostsMax + 1;

export class Primary {
  readonly #epochs: Epochs;

  constructor(epochs: Epochs) {
    this.#epochs = epochs;
  }

  /** By its position in the URL; `undefined` before the first one, and once it is known to be a standby. */
  get host(): number | undefined {
    const place = this.#epochs.now('primary') % places;
    return place === 0 ? undefined : place - 1;
  }

  /** The highest that was seen; 0 where no server says. */
  get timeline(): number {
    return Math.floor(this.#epochs.now('primary') / places);
  }

  /**
   * Why a server that accepts writes must not get them. If two servers accept writes on one timeline, it is unknown
   * which of them has the acknowledged commits: a previous server that is silent, late, or full may still be alive. A
   * promotion proves that it was replaced, and begins a new timeline.
   */
  refusalOf(host: number, timeline: number | undefined): 'outdated' | 'rival' | undefined {
    const { host: last, timeline: highest } = this;
    if (timeline !== undefined && timeline < highest) return 'outdated';
    if (last === undefined || last === host) return undefined;
    return timeline !== undefined && highest > 0 && timeline > highest ? undefined : 'rival';
  }

  /** Whether it has other data than the first server that took the writes of any thread. */
  isOther(systemId: string | undefined): boolean {
    const known = this.#epochs.now('primary_data');
    return systemId !== undefined && known !== 0 && known !== folded(systemId);
  }

  /** From now on no server with other data is used. */
  remember(systemId: string | undefined): void {
    if (systemId !== undefined) this.#epochs.replace('primary_data', 0, folded(systemId));
  }

  /** False where it is refused, by what another thread may have seen meanwhile. */
  adopt(host: number, timeline: number | undefined): boolean {
    for (;;) {
      const seen = this.#epochs.now('primary');
      if (this.refusalOf(host, timeline) !== undefined) return false;
      const next = Math.max(this.timeline, timeline ?? 0) * places + host + 1;
      if (seen === next || this.#epochs.replace('primary', seen, next)) return true;
    }
  }

  /** It has not the writes any more, for certain. Another one may take them then, on the same timeline too. */
  leave(host: number): void {
    const seen = this.#epochs.now('primary');
    if (this.host === host) this.#epochs.replace('primary', seen, seen - (seen % places));
  }

  /** Whether a session that was opened with the server then may go on. */
  has(host: number, timeline: number | undefined): boolean {
    return this.host === host && (timeline ?? this.timeline) === this.timeline;
  }
}

/** The time at which the data was made, and more, in 32 bits of which 0 says "not known". */
function folded(systemId: string): number {
  const id = BigInt(systemId);
  return Number(BigInt.asIntN(32, id ^ (id >> 32n))) || 1;
}
