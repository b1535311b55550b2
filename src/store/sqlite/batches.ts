/** The rows of a statement in batches, for an engine that takes many rows at a time. */
import type { StatementSync } from 'node:sqlite';
import type { SqlValue } from '../tables.ts';

const rowsAtOnce = 500;
const bytesAtOnce = 1_048_576;

/** Values in the order of the columns. Integers are of type `bigint`. */
export function* batchesOf(select: StatementSync): Generator<readonly (readonly SqlValue[])[]> {
  select.setReturnArrays(true);
  // An attacker may have written an integer beyond 2^53, which a backup keeps as it is.
  select.setReadBigInts(true);
  let rows: SqlValue[][] = [];
  let bytes = 0;
  for (const row of select.iterate() as Iterable<unknown> as Iterable<SqlValue[]>) {
    // The driver writes lists of bytes by their buffers.
    const values = row.map((value) => (value instanceof Uint8Array ? Buffer.from(value) : value));
    rows.push(values);
    for (const value of values) bytes += sizeOf(value);
    if (rows.length < rowsAtOnce && bytes < bytesAtOnce) continue;
    yield rows;
    rows = [];
    bytes = 0;
  }
  if (rows.length > 0) yield rows;
}

function sizeOf(value: unknown): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 8;
}
