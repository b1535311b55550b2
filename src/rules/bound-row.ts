/** Rows with sealed data that opens as long as nobody altered the row. */
import { type Binding, openText, type VersionedKeys } from '../crypto/envelope.ts';
import { type AlteredRow, VaultError } from '../lib/errors.ts';
import type { Secret } from '../lib/secret.ts';
import type { Row } from '../store/tables.ts';

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

/** What opening a row failed with, which names the row where that was altered. */
export function namingRow(error: unknown, altered: AlteredRow): unknown {
  if (!(error instanceof VaultError) || error.code !== 'integrity') return error;
  return new VaultError('integrity', { public: error.public, internal: error.message, altered });
}
