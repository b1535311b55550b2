/** Rows with sealed data that opens as long as nobody altered the row. */
import { type Binding, openText, requireAuthentic, sealText } from '../crypto/envelope.ts';
import { type AlteredRow, VaultError } from '../lib/errors.ts';
import type { Random } from '../lib/random.ts';
import type { Secret } from '../lib/secret.ts';
import type { Row } from '../store/tables.ts';
import type { Opener } from './openings.ts';
import type { Keys } from './proven-row.ts';

type BoundRow = Pick<Row<'tokens'>, 'token_id' | 'data'> | Row<'token_intents'>;

/** @throws VaultError `integrity`, which names the row, when the data or any other column was altered. */
export function openBound(
  { keyring, grant }: Opener,
  binding: Binding,
  row: BoundRow,
): Secret<string> {
  try {
    return openText(keyring.opening('data', grant), binding, row.data);
  } catch (error) {
    throw namingRow(error, nameOf(row));
  }
}

/** Gives no value. @throws VaultError as {@link openBound} does. */
export function requireBoundRow({ keyring }: Keys, binding: Binding, row: BoundRow): void {
  try {
    requireAuthentic(keyring.sealing('data'), binding, row.data);
  } catch (error) {
    throw namingRow(error, nameOf(row));
  }
}

function nameOf(row: BoundRow): AlteredRow {
  return 'token_id' in row
    ? { entity: 'token', id: row.token_id }
    : { entity: 'token_intent', id: row.token_intent_id };
}

type StoredRun = Row<'reactor_runs'>;
export type UnsealedRun = Omit<StoredRun, 'body'>;

/** A stored call of a reactor: all of its columns are bound to what is sealed. */
export function sealedRun(
  { keyring, random }: Keys & { readonly random: Random },
  row: UnsealedRun,
  text: string,
): StoredRun {
  return { ...row, body: sealText(keyring.sealing('data'), bindingOf(row), text, random) };
}

/** @throws VaultError `integrity` when anything of the row was altered. */
export function openRunText({ keyring, grant }: Opener, row: StoredRun): Secret<string> {
  try {
    return openText(keyring.opening('data', grant), bindingOf(row), row.body);
  } catch (error) {
    throw namingRow(error, { entity: 'reactor_run', id: row.run_id });
  }
}

/** Gives no value. @throws VaultError as {@link openRunText} does. */
export function requireRun({ keyring }: Keys, row: StoredRun): void {
  try {
    requireAuthentic(keyring.sealing('data'), bindingOf(row), row.body);
  } catch (error) {
    throw namingRow(error, { entity: 'reactor_run', id: row.run_id });
  }
}

function bindingOf({ tenant_id, run_id, ...rest }: UnsealedRun): Binding {
  const { reactor_id, version, due_at, created_at, expires_at } = rest;
  const row = JSON.stringify([reactor_id, version, due_at, created_at, expires_at]);
  return { tenant: tenant_id, id: run_id, field: 'reactor_run.body', row };
}

/** What opening a row failed with, which names the row where that was altered. */
export function namingRow(error: unknown, altered: AlteredRow): unknown {
  if (!(error instanceof VaultError) || error.code !== 'integrity') return error;
  return new VaultError('integrity', { public: error.public, internal: error.message, altered });
}
