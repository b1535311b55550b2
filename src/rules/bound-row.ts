/** Rows with sealed data that opens as long as nobody altered the row. */
import { type Binding, openText, sealText, type VersionedKeys } from '../crypto/envelope.ts';
import { type AlteredRow, VaultError } from '../lib/errors.ts';
import type { Random } from '../lib/random.ts';
import type { Secret } from '../lib/secret.ts';
import type { Row } from '../store/tables.ts';
import type { Keys } from './proven-row.ts';

type BoundRow = Pick<Row<'tokens'>, 'token_id' | 'data'> | Row<'token_intents'>;

/** @throws VaultError `integrity`, which names the row, when the data or any other column was altered. */
export function openBound(keys: VersionedKeys, binding: Binding, row: BoundRow): Secret<string> {
  try {
    return openText(keys, binding, row.data);
  } catch (error) {
    throw namingRow(
      error,
      'token_id' in row
        ? { entity: 'token', id: row.token_id }
        : { entity: 'token_intent', id: row.token_intent_id },
    );
  }
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
export function openRunText({ keyring }: Keys, row: StoredRun): Secret<string> {
  try {
    return openText(keyring.sealing('data'), bindingOf(row), row.body);
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
