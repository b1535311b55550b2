/**
 * What an error of PostgreSQL says was violated. On a shard of a distributed table the names of tables and
 * constraints end in the number of the shard, and the coordinator may pass the error on as its own, XX000.
 */
import type pg from 'pg';
import { shapes, type Table } from '../tables.ts';

/** SQLSTATE of the failures that say that a precondition did not hold. */
export const uniqueViolation = '23505';
/** Raised on purpose by the statement when a row was not in the version its writer had seen. */
export const divisionByZero = '22012';

/** Raised by the triggers that count stored bytes; no table has a check of its own. */
export const checkViolation = '23514';

const internalError = 'XX000';

/** A worker's message, as the coordinator passes it on. In another language it is not recognized and is a failure. */
const passedOn: readonly (readonly [code: string, message: RegExp])[] = [
  [uniqueViolation, /duplicate key value violates unique constraint/],
  [divisionByZero, /division by zero/],
  ['23502', /violates not-null constraint/],
  ['22003', /out of range/],
  ['22P02', /invalid input syntax/],
  ['54000', /^index row (?:size|requires)/],
];

/** The SQLSTATE, also of an error that was passed on. */
export function codeOf({ code, message }: pg.DatabaseError): string | undefined {
  if (code !== internalError) return code;
  return passedOn.find(([, text]) => text.test(message))?.[0] ?? code;
}

export interface Violation {
  readonly table: Table;
  /** The name of the constraint without the table: `key`, `fingerprint`. */
  readonly name: string;
}

const quotedConstraint = /unique constraint "([^"]+)"/;
const shardNumber = /_[0-9]{5,}$/;

/** The unique constraint that a row violated; `undefined` where the error is about none of the vault's. */
export function violationOf(error: pg.DatabaseError): Violation | undefined {
  if (codeOf(error) !== uniqueViolation) return undefined;
  const found = error.constraint ?? quotedConstraint.exec(error.message)?.[1] ?? '';
  const constraint = found.replace(shardNumber, '');
  for (const table of tablesByLength) {
    if (constraint.startsWith(`${table}_`)) {
      return { table, name: constraint.slice(table.length + 1) };
    }
  }
  return undefined;
}

/** The longest first: `webhook_failures` before a table that its name begins with. */
const tablesByLength = (Object.keys(shapes) as Table[]).sort(
  (one, other) => other.length - one.length,
);
