/**
 * A chapter of the search index: its rows, which prove themselves. The index only says where to look. The log is the
 * truth, and where rows are missing or were altered a search goes through the log as if there were no index.
 */
import { hour, type Instant, parseInstant } from '../../base/clock.ts';
import type { Keyring } from '../../keys/keyring.ts';
import { proveRow, rowProven } from '../../keys/row-proof.ts';
import type { Row } from '../../store/tables.ts';

/**
 * Blocks are indexed once they are so old. It bounds how late a block may be committed, and how far the clock of a
 * server may be behind those of others, so that a filter finds its entries.
 */
export const latenessMsMax = hour;

/** Chapters that end later were closed by a server whose clock was ahead: entries may still come into them. */
export function indexedUntil(now: Instant): Instant {
  return parseInstant(Math.max(0, now - latenessMsMax));
}

type IndexRow = Row<'log_index'>;

const table = 'log_index';

export function provenIndexRow(keyring: Keyring, row: Omit<IndexRow, 'proof'>): IndexRow {
  return { ...row, proof: proveRow(keyring, table, textOf(row)) };
}

export function isOwnIndexRow(keyring: Keyring, row: IndexRow): boolean {
  return rowProven(keyring, { table, row: textOf(row), proof: row.proof });
}

function textOf({ tenant_id, slot, since, until, postings }: Omit<IndexRow, 'proof'>): string {
  const { buffer, byteOffset, byteLength } = postings;
  const text = Buffer.from(buffer, byteOffset, byteLength).toString('base64');
  return JSON.stringify([tenant_id, slot, since, until, text]);
}
