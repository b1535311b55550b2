/** The digest of a table: equal for tables with the same rows, whatever their order and whichever engine has them. */
import { sha256 } from '../../keys/digest.ts';
import type { SqlValue } from '../../store/tables.ts';

export interface TableDigest {
  readonly rows: number;
  /** The exclusive or of the SHA-256 digests of all rows, in hexadecimal. No two rows of a table are the same. */
  readonly digest: string;
}

const digestBytes = 32;

export async function digestOfRows(
  batches: AsyncIterable<readonly (readonly SqlValue[])[]>,
): Promise<TableDigest> {
  const sum = Buffer.alloc(digestBytes);
  let rows = 0;
  for await (const batch of batches) {
    for (const row of batch) {
      const digest = sha256(encodedRow(row));
      for (let at = 0; at < digestBytes; at++) sum[at] = (sum[at] ?? 0) ^ (digest[at] ?? 0);
    }
    rows += batch.length;
  }
  return { rows, digest: sum.toString('hex') };
}

/** Each value with its kind and its length, so that no two rows are encoded alike. */
function encodedRow(row: readonly SqlValue[]): Buffer {
  const parts: Uint8Array[] = [];
  for (const value of row) {
    const bytes = value instanceof Uint8Array ? value : Buffer.from(String(value));
    parts.push(Buffer.from(`${kindOf(value)}${bytes.length}:`), bytes);
  }
  return Buffer.concat(parts);
}

/** PostgreSQL gives small integers as numbers, and SQLite as `bigint`. */
function kindOf(value: SqlValue): string {
  if (value === null) return 'null';
  if (value instanceof Uint8Array) return 'bytes';
  return typeof value === 'string' ? 'text' : 'integer';
}
