/** Translates an error of PostgreSQL: the change that caused it, and the caller's error. */
import pg from 'pg';
import { VaultError } from '../../base/errors.ts';
import type { FlatChange, Precondition } from '../change.ts';
import { moved, movedCode, movedTenantCode } from '../outgoing-copy.ts';
import { shapes } from '../tables.ts';
import { unavailable, unstorable } from '../unavailable.ts';
import {
  checkViolation,
  codeOf,
  divisionByZero,
  uniqueViolation,
  violationOf,
} from './violation.ts';

/** Lost a lock race against another lane: nothing was done, and a second try is likely to succeed. */
const lockLost = new Set(['40P01', '40001', '55P03']);
/** The server is a standby, or its transactions are read-only: nothing was done. */
const readOnly = '25006';
const diskFull = '53100';
const featureNotSupported = '0A000';
/** The server is read-only at the moment, is out of a resource, is stopping, or cannot reach its disk. */
const ofTheServer = /^(?:25|53|57|58)/;
/** Errors of the value: out of range, against a constraint, or too large for an index. */
const ofTheValue = /^(?:22|23|54)/;

/** True for an error that the session did not outlive, where the server speaks English. */
export function endsSession({ severity }: pg.DatabaseError): boolean {
  return severity === 'FATAL' || severity === 'PANIC';
}

/** True for the errors that are a part of life. */
export function isExpected(error: pg.DatabaseError): boolean {
  const code = codeOf(error);
  return (
    code === uniqueViolation ||
    code === divisionByZero ||
    code === checkViolation ||
    isLockLost(error)
  );
}

export function isReadOnly(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === readOnly;
}

/** True where a file could not be made larger: nothing was done. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === diskFull;
}

/** True if the table of a prepared statement has other columns now. */
export function isOutdatedPlan(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false;
  return error.code === featureNotSupported && error.routine === 'RevalidateCachedQuery';
}

export function isLockLost(error: unknown): boolean {
  return error instanceof pg.DatabaseError && lockLost.has(error.code ?? '');
}

/** Of a Citus coordinator, as its own error, about a connection to a worker. */
export const workerLost =
  /connection marked as essential|connection to the remote node|connection not open|lost connection/;

/**
 * True where a coordinator lost a worker. The worker may have committed what it was sent last, and the coordinator
 * connects again for the next statement.
 */
export function isWorkerLost(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || endsSession(error)) return false;
  return /^08/.test(error.code ?? '') || workerLost.test(error.message);
}

/** True for an error that undid the statement and may be about no more than one change of it. */
export function mayBeOfOne(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError && !isMoved(error) && !ofTheServer.test(error.code ?? '')
  );
}

/** True where the vault was moved to another place: nothing was done. */
function isMoved(error: pg.DatabaseError): boolean {
  return error.code === movedCode;
}

/** The same of a tenant. Changes of others in the group can be done. */
function isTenantMoved(error: pg.DatabaseError): boolean {
  return error.code === movedTenantCode;
}

/** True where another block of the log has the place of one that was to be written: nothing was done. */
export function isLogTaken(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false;
  const violation = violationOf(error);
  return violation?.table === 'logs' && violation.name === 'key';
}

/** The precondition of the change that did not hold, if that is what the error says. */
export function conflictOf(error: unknown, change: FlatChange): Precondition | undefined {
  if (!(error instanceof pg.DatabaseError)) return undefined;
  const violation = violationOf(error);
  if (violation) return `${violation.table}.${violation.name}`;
  if (codeOf(error) === checkViolation && isStorageQuota(error.constraint)) {
    return `stored_bytes.${error.constraint}`;
  }
  if (codeOf(error) !== divisionByZero) return undefined;
  const guarded = change.operations.filter((operation) => operation.action !== 'insert');
  // The statement does not say which row it missed; rows without a version hang on one that has it.
  const missed = guarded.find((operation) => shapes[operation.table].versioned) ?? guarded[0];
  return missed && `${missed.table}.version`;
}

function isStorageQuota(name: string | undefined): boolean {
  return name === 'token_storage' || name === 'public_application_storage';
}

/** Any failure except a conflict, as the caller gets it. */
export function failureOf(error: unknown): VaultError {
  if (error instanceof VaultError) return error;
  if (!(error instanceof Error)) return unavailable('PostgreSQL failed');
  if (error instanceof pg.DatabaseError && (isMoved(error) || isTenantMoved(error))) {
    return moved(error.message, error);
  }
  if (!(error instanceof pg.DatabaseError) || !ofTheValue.test(codeOf(error) ?? '')) {
    return unavailable(error.message, error);
  }
  // The message may quote the value, as that of 22P02 does.
  const { routine, table, column, constraint } = error;
  return unstorable(
    ['PostgreSQL', codeOf(error), routine, table, column, constraint].join(' '),
    error,
  );
}
