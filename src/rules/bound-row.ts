/** Rows whose sealed data is bound to all their other columns: it opens, or somebody altered the row. */
import { type Binding, openText, type VersionedKeys } from '../crypto/envelope.ts';
import { VaultError } from '../lib/errors.ts';
import type { Secret } from '../lib/secret.ts';
import type { Row } from '../store/tables.ts';

type BoundRow = Pick<Row<'tokens'>, 'token_id' | 'data'> | Row<'token_intents'>;

/** @throws VaultError `integrity`, which names the row, when the data or any other column was altered. */
export function openBound(keys: VersionedKeys, binding: Binding, row: BoundRow): Secret<string> {
  try {
    return openText(keys, binding, row.data);
  } catch (error) {
    if (!(error instanceof VaultError) || error.code !== 'integrity') throw error;
    const altered =
      'token_id' in row
        ? { entity: 'token', id: row.token_id }
        : { entity: 'token_intent', id: row.token_intent_id };
    throw new VaultError('integrity', { public: error.public, internal: error.message, altered });
  }
}
