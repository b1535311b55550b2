/** Chunks of a body: each costs some hundred bytes of memory and some microseconds, however small it is. */

/** As many as a body may come in, whatever their size. */
export const smallChunksMax = 4_096;

/** What those of a longer body have on average: a short line of an import, and less than any packet. */
const chunkBytesMin = 24;

/**
 * Counts the chunks of one body. A megabyte in chunks of one byte would hold hundreds of megabytes, and keep a thread
 * busy for seconds.
 */
export class ChunkCount {
  readonly #morePerSecond: number;
  readonly #began: number;
  #chunks = 0;
  #bytes = 0;

  /** @param morePerSecond small chunks in addition, for a body that is written while it is sent. */
  constructor(morePerSecond = 0) {
    this.#morePerSecond = morePerSecond;
    this.#began = morePerSecond > 0 ? performance.now() : 0;
  }

  /** False once the body has come in too many chunks for its length. */
  mayTake({ length }: { readonly length: number }): boolean {
    this.#chunks += 1;
    this.#bytes += length;
    if (this.#chunks <= smallChunksMax || this.#bytes >= this.#chunks * chunkBytesMin) return true;
    return this.#chunks <= smallChunksMax + this.#allowance;
  }

  get #allowance(): number {
    if (this.#morePerSecond === 0) return 0;
    return (this.#morePerSecond * (performance.now() - this.#began)) / 1_000;
  }
}
