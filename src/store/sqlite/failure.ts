/** Translates an error of SQLite: the precondition that did not hold, or the caller's error. */
import type { Precondition } from '../change.ts';
import { movedTextIn } from '../outgoing-copy.ts';
import { shapes, type Table } from '../tables.ts';
import type { WireOutcome } from './wire.ts';

const constraintFailures = new Set([1555, 2067]); // SQLITE_CONSTRAINT_PRIMARYKEY, _UNIQUE

/**
 * SQLite names the columns of the constraint, not the constraint: `tokens.tenant_id, tokens.token_id`.
 * Only an index over an expression is named itself: `index 'tokens_fingerprint'`.
 */
export function preconditionOf(error: unknown, table: Table): Precondition | undefined {
  const { errcode, message } = error as { errcode?: number; message?: string };
  if (errcode === undefined || !constraintFailures.has(errcode)) return undefined;
  const index = /: index '(\w+)'$/.exec(message ?? '')?.[1];
  if (index !== undefined) return `${table}.${index.slice(table.length + 1)}`;
  const columns = (message ?? '')
    .slice((message ?? '').indexOf(': ') + 2)
    .split(', ')
    .map((column) => column.slice(column.indexOf('.') + 1))
    .join();
  const { unique } = shapes[table];
  const name = Object.keys(unique).find((candidate) => unique[candidate]?.join() === columns);
  return `${table}.${name ?? 'key'}`;
}

/** SQLITE_FULL: nothing was done. */
export function isFull(error: unknown): boolean {
  return (Number((error as { errcode?: number }).errcode) & 0xff) === 13;
}

/** What the database says where the vault was moved to another place: nothing was done. */
export function movedIn(error: unknown): string | undefined {
  return movedTextIn(describe(error));
}

const ofTheValue = new Set([18, 19, 20, 25]); // SQLITE_TOOBIG, _CONSTRAINT, _MISMATCH, _RANGE

/** An error that is not from SQLite is a mistake of ours, and its message may quote a value. */
export function failureOf(error: unknown): WireOutcome {
  const { errcode, code } = error as { errcode?: number; code?: string };
  if (errcode === undefined) return { unstorable: code ?? 'the writer failed' };
  const moved = movedIn(error);
  if (moved !== undefined) return { moved };
  return ofTheValue.has(errcode & 0xff)
    ? { unstorable: describe(error) }
    : { unavailable: describe(error) };
}

/** SQLite's messages name tables, columns and files; bound values never appear in them. */
export function describe(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown failure';
}
