/** The bytes that an import holds: lines in progress, and responses that the client has not read yet. */

/** Of lines that are worked on at once, and of the response as well: a part of each may be added below it. */
export const heldBytesMax = 4_194_304;

export class HeldBytes {
  #working = 0;
  #unread = 0;
  #isClosed = false;
  #changed = Promise.withResolvers<void>();
  #endReading = () => {};

  /** True once nothing more is to be done. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  close(): void {
    this.#isClosed = true;
    this.#endReading();
    this.#notify();
  }

  /** The pending read, or `undefined` once closed. One read at a time: `Promise.race` would retain every one. */
  unlessClosed<T>(reading: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      this.#endReading = () => resolve(undefined);
      reading.then(resolve, reject);
      if (this.#isClosed) resolve(undefined);
    });
  }

  working(bytes: number): void {
    this.#working += bytes;
    this.#notify();
  }

  unread(bytes: number): void {
    this.#unread += bytes;
    this.#notify();
  }

  /** Resolves when more lines may be begun, or the end has come. */
  async untilRoom(): Promise<void> {
    while (!this.#isClosed && this.#working + this.#unread >= heldBytesMax) {
      await this.#changed.promise;
    }
  }

  /** Resolves when the import may respond to more lines, or is closed. */
  async untilRead(): Promise<void> {
    while (!this.#isClosed && this.#unread >= heldBytesMax) await this.#changed.promise;
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
