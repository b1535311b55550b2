/** How many rows a part of a stream has: as many as its request has time for, as the parts before show. */

/** The first part: its cost says what a row costs. */
export const rowsFirst = 16;
/** Parts grow by no more than this factor, because one part says little about the next. */
const growthMax = 2;
/** How quickly the cost of a row follows that of the rows of the latest part. */
const learning = 0.3;

export interface PartRowsNeeded {
  /** Of the request so far, in milliseconds. */
  readonly cost: number;
  /** How long the part may take. */
  readonly msMax: number;
  readonly rowsMax: number;
}

export class PartRows {
  /** Of the part before. */
  #rows = 0;
  #costBefore = 0;
  #costOfRow: number | undefined;
  #allowed = rowsFirst / growthMax;

  /** Called at the beginning of each part. Takes the cost since the last call as that of the part before. */
  next({ cost, msMax, rowsMax }: PartRowsNeeded): number {
    this.#learn(cost);
    const within = this.#costOfRow ? msMax / this.#costOfRow : Number.POSITIVE_INFINITY;
    this.#allowed = Math.max(1, Math.min(within, this.#allowed * growthMax));
    this.#rows = Math.min(Math.floor(this.#allowed), rowsMax);
    return this.#rows;
  }

  #learn(cost: number): void {
    const ofRow = (cost - this.#costBefore) / this.#rows;
    this.#costBefore = cost;
    if (!(ofRow > 0 && Number.isFinite(ofRow))) return;
    this.#costOfRow ??= ofRow;
    this.#costOfRow += learning * (ofRow - this.#costOfRow);
  }
}
