/** Rows whose sealed data opens only as long as every other column is as the vault wrote it. */

import { type AlteredRow, isIntegrityError, VaultError } from '../base/errors.ts';
import type { Random } from '../base/random.ts';
import type { Secret } from '../base/secret.ts';
import {
  type Binding,
  openText,
  requireAuthentic,
  resealText,
  type Sealed,
  sealText,
} from '../keys/envelope.ts';
import { type ExplainedName, explainedTables } from '../store/row-states.ts';
import { type Unproven, unverifiedColumns } from '../store/stored-row.ts';
import type { AnyRow, Row } from '../store/tables.ts';
import type { Opener, Resealer } from './openings.ts';
import type { TenantKeys } from './tenant.ts';

/** Tables whose rows are authenticated by the data that is sealed in them. */
export type BoundTable = {
  [T in ExplainedName]: (typeof explainedTables)[T]['by'] extends 'proof' ? never : T;
}[ExplainedName];

export type UnsealedToken = Omit<Row<'tokens'>, 'data'>;
export type UnsealedIntent = Omit<Row<'token_intents'>, 'data'>;
export type UnsealedRun = Omit<Row<'reactor_runs'>, 'body'>;

/** A row without what is sealed in it. */
interface Unsealed {
  readonly tokens: UnsealedToken;
  readonly token_intents: UnsealedIntent;
  readonly reactor_runs: UnsealedRun;
}

interface BoundForm<T extends BoundTable> {
  readonly sealedOf: (row: Row<T>) => Uint8Array;
  /** Each table has its own field, so data sealed in one table never opens as that of another with the same id. */
  readonly bindingOf: (row: Unsealed[T]) => Binding;
}

const forms: { readonly [T in BoundTable]: BoundForm<T> } = {
  tokens: { sealedOf: ({ data }) => data, bindingOf: bindingOfToken },
  token_intents: { sealedOf: ({ data }) => data, bindingOf: bindingOfIntent },
  reactor_runs: { sealedOf: ({ body }) => body, bindingOf: bindingOfRun },
};

interface SealingRow<T extends BoundTable> extends Pick<TenantKeys, 'keyring'> {
  readonly table: T;
  readonly row: Unsealed[T];
  readonly random: Random;
  /** Of the data key: that of the stored row, where its digests stay as they are. The active one unless given. */
  readonly version?: number | undefined;
}

/** Seals a string together with the rest of its row. */
export function sealBound<T extends BoundTable>(
  { keyring, table, row, random, version }: SealingRow<T>,
  text: string,
): Sealed {
  const active = keyring.sealing('data');
  const keys = version === undefined ? active : { ...active, activeVersion: version };
  return sealText(keys, forms[table].bindingOf(row), text, random);
}

/** A row as the store returns it, or as the vault has just made it. */
export type BoundRow<T extends BoundTable> = Unproven<T> | Row<T>;

/** A row that is as the vault wrote it, because what is sealed in it has opened. */
export interface OpenedRow<T extends BoundTable> {
  readonly row: Row<T>;
  readonly text: Secret<string>;
}

/** @throws VaultError `integrity`, which names the row, when the data or any other column was altered. */
export function openBound<T extends BoundTable>(
  { keyring, grant }: Opener,
  table: T,
  found: BoundRow<T>,
): OpenedRow<T> {
  const { sealedOf, bindingOf } = forms[table];
  const row = columnsOf(found);
  try {
    return { row, text: openText(keyring.opening('data', grant), bindingOf(row), sealedOf(row)) };
  } catch (error) {
    throw namingRow(error, nameOf(table, row));
  }
}

function columnsOf<T extends BoundTable>(row: BoundRow<T>): Row<T> & Unsealed[T] {
  return unverifiedColumns<T>(row) as Row<T> & Unsealed[T];
}

/**
 * The row, and what is sealed in it, sealed again under the active key for the next version of the row.
 * @throws VaultError like {@link openBound}.
 */
export function resealBound<T extends BoundTable>(
  { keyring, grant, random }: Resealer,
  table: T,
  found: BoundRow<T>,
): { readonly row: Row<T>; readonly sealed: Sealed } {
  const { sealedOf, bindingOf } = forms[table];
  const row = columnsOf(found);
  const next = { ...row, version: row.version + 1 };
  try {
    const sealed = resealText(
      keyring.opening('data', grant),
      { from: bindingOf(row), to: bindingOf(next) },
      { sealed: sealedOf(row), random },
    );
    return { row, sealed };
  } catch (error) {
    throw namingRow(error, nameOf(table, row));
  }
}

/** The row, without what is sealed in it. @throws VaultError like {@link openBound}. */
export function requireBound<T extends BoundTable>(
  { keyring }: Pick<TenantKeys, 'keyring'>,
  table: T,
  found: BoundRow<T>,
): Row<T> {
  const { sealedOf, bindingOf } = forms[table];
  const row = columnsOf(found);
  try {
    requireAuthentic(keyring.sealing('data'), bindingOf(row), sealedOf(row));
    return row;
  } catch (error) {
    throw namingRow(error, nameOf(table, row));
  }
}

/** Adds the name of the row to an integrity error. Returns other errors unchanged. */
export function namingRow(error: unknown, altered: AlteredRow): unknown {
  if (!isIntegrityError(error)) return error;
  return new VaultError('integrity', { public: error.public, internal: error.message, altered });
}

/** The name of a row in log entries. */
export function nameOf(table: ExplainedName, row: object): AlteredRow {
  const { entity, id } = explainedTables[table];
  return { entity, id: String((row as AnyRow)[id]) };
}

function bindingOfToken(row: UnsealedToken): Binding {
  return { tenant: row.tenant_id, id: row.token_id, field: 'data', row: boundColumns(row) };
}

/**
 * Written out for speed: every read of a token runs it. A test alters each column of the schema. Each value is
 * delimited, so no two rows produce the same string.
 */
function boundColumns(row: UnsealedToken): string {
  return (
    numberEnding(row.version) +
    withLength(row.type) +
    withLength(row.container) +
    withLength(row.mask) +
    withLength(row.metadata) +
    withLength(row.fingerprint) +
    withLength(row.fingerprint_expression) +
    numberEnding(row.deduplicated) +
    withLength(row.search_indexes) +
    numberEnding(row.expires_at) +
    numberEnding(row.expires_offset) +
    numberEnding(row.code_expires_at) +
    withLength(row.created_by) +
    numberEnding(row.created_at) +
    withLength(row.modified_by) +
    numberEnding(row.modified_at)
  );
}

function withLength(text: string | null): string {
  return text === null ? '-' : `${text.length}:${text}`;
}

function numberEnding(value: number | null): string {
  return value === null ? '-' : `${value};`;
}

function bindingOfIntent(row: UnsealedIntent): Binding {
  const columns = JSON.stringify([
    row.version,
    row.type,
    row.fingerprint,
    row.code_expires_at,
    row.created_by,
    row.created_at,
    row.expires_at,
    // Earlier releases wrote rows without these columns.
    ...(row.client_key_id === null && row.recognized === null
      ? []
      : [row.client_key_id, row.recognized]),
  ]);
  const id = row.token_intent_id;
  return { tenant: row.tenant_id, id, field: 'token_intent.data', row: columns };
}

function bindingOfRun({ tenant_id, run_id, ...rest }: UnsealedRun): Binding {
  const { reactor_id, version, due_at, created_at, expires_at } = rest;
  const row = JSON.stringify([reactor_id, version, due_at, created_at, expires_at]);
  return { tenant: tenant_id, id: run_id, field: 'reactor_run.body', row };
}
