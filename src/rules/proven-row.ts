/** Authenticated rows: signed or sealed when the vault writes them, and checked before they decide anything. */

import { integrityError, isIntegrityError } from '../base/errors.ts';
import type { Keyring } from '../keys/keyring.ts';
import { proveRow, rowProven } from '../keys/row-proof.ts';
import type { ExplainedName, explainedTables } from '../store/row-states.ts';
import { type AnyRow, type Row, shapes } from '../store/tables.ts';
import { nameOf, requireBound } from './bound-row.ts';

/** Tables whose rows carry a proof. Tokens and intents need none: their sealed data is bound to the row. */
export type ProvenTable = {
  [T in ExplainedName]: (typeof explainedTables)[T]['by'] extends 'proof' ? T : never;
}[ExplainedName];

/** Any object with the keys of a tenant. */
export interface Keys {
  readonly keyring: Keyring;
}

/** The row with the proof that the vault wrote all of it. */
export function proven<T extends ProvenTable>(
  { keyring }: Keys,
  table: T,
  row: Omit<Row<T>, 'proof'>,
): Row<T> {
  return { ...row, proof: proveRow(keyring, table, provenText(table, row)) } as unknown as Row<T>;
}

/**
 * @throws VaultError `integrity`, which names the row, if its data or any column that decides something was altered.
 */
export function requireProven<T extends ExplainedName>(keys: Keys, table: T, row: Row<T>): Row<T> {
  requirements[table](keys, row);
  return row;
}

/** False when {@link requireProven} throws. */
export function isProven<T extends ExplainedName>(keys: Keys, table: T, row: Row<T>): boolean {
  try {
    requirements[table](keys, row);
    return true;
  } catch (error) {
    if (isIntegrityError(error)) return false;
    throw error;
  }
}

const requirements: { readonly [T in ExplainedName]: (keys: Keys, row: Row<T>) => void } = {
  tenants: requiringProof('tenants'),
  applications: requiringProof('applications'),
  api_keys: requiringProof('api_keys'),
  sessions: requiringProof('sessions'),
  proxies: requiringProof('proxies'),
  reactors: requiringProof('reactors'),
  reactor_runs: (keys, row) => requireBound(keys, 'reactor_runs', row),
  tenant_hosts: requiringProof('tenant_hosts'),
  client_keys: requiringProof('client_keys'),
  client_key_uses: requiringProof('client_key_uses'),
  webhooks: requiringProof('webhooks'),
  tokens: (keys, row) => requireBound(keys, 'tokens', row),
  token_intents: (keys, row) => requireBound(keys, 'token_intents', row),
};

function requiringProof<T extends ProvenTable>(table: T) {
  return ({ keyring }: Keys, row: Row<T>): void => {
    const { proof } = row as { readonly proof: string };
    if (rowProven(keyring, { table, row: provenText(table, row), proof })) return;
    const altered = nameOf(table, row);
    throw integrityError(`the ${altered.entity} ${altered.id} was altered outside the vault`, {
      altered,
    });
  };
}

/** Columns that record the use of a key. They decide nothing, and are written without a new proof. */
const unprovenColumns: Readonly<Record<ProvenTable, readonly string[]>> = {
  tenants: ['proof'],
  applications: ['proof'],
  api_keys: ['proof', 'version', 'last_used_at'],
  sessions: ['proof'],
  proxies: ['proof'],
  tenant_hosts: ['proof'],
  reactors: ['proof'],
  client_keys: ['proof'],
  client_key_uses: ['proof'],
  webhooks: ['proof'],
};

/**
 * Columns that a later release added. If all of them are null, the string is the same as before, so that rows of
 * earlier releases stay valid.
 */
const addedColumns: Partial<Readonly<Record<ProvenTable, readonly string[]>>> = {
  sessions: ['created_by_key', 'authorized_by_key'],
};

/** The columns in the order of the schema. JSON distinguishes null from strings. */
export function provenText(table: ProvenTable, row: object): string {
  const values = row as AnyRow;
  const added = addedColumns[table] ?? [];
  const hasAdded = added.some((column) => (values[column] ?? null) !== null);
  return JSON.stringify(
    shapes[table].columns
      .filter((column) => !unprovenColumns[table].includes(column))
      .filter((column) => hasAdded || !added.includes(column))
      .map((column) => {
        const value = values[column] ?? null;
        return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
      }),
  );
}
