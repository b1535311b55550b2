/**
 * The border to the database: rows that control access carry a proof, and nothing behind this file sees one that the
 * vault did not write.
 */

import { type AlteredRow, integrityError, invalid, isIntegrityError } from '../base/errors.ts';
import type { Keyring } from '../keys/keyring.ts';
import { proveRow, rowProven } from '../keys/row-proof.ts';
import type { ExplainedName, ProvenTable } from '../store/row-states.ts';
import type { Store } from '../store/store.ts';
import { type RowFromStore, type Unproven, unverifiedColumns } from '../store/stored-row.ts';
import { type AnyRow, type Key, type Row, shapes } from '../store/tables.ts';
import { type BoundTable, nameOf, requireBound } from './bound-row.ts';
import type { Quarantine } from './quarantine.ts';

/** Any object with the keys of a tenant. */
export interface Keys {
  readonly keyring: Keyring;
}

/** A tenant: what was altered of it is set aside in one place, whoever reads it. */
export interface Guarded extends Keys {
  readonly quarantine: Quarantine;
}

/**
 * The row with the proof that the vault wrote all of it.
 * @throws VaultError `validation_failed` naming the column whose text would come back from a database as another one.
 */
export function proven<T extends ProvenTable>(
  { keyring }: Keys,
  table: T,
  row: Omit<Row<T>, 'proof'>,
): Row<T> {
  requireStorable(row);
  return { ...row, proof: proveRow(keyring, table, provenText(table, row)) } as unknown as Row<T>;
}

/**
 * No database keeps half of a surrogate pair, or PostgreSQL U+0000. Such a row would count as altered as soon as it was
 * read: a tenant with such a name was locked out, with all of its keys.
 */
function requireStorable(row: object): void {
  for (const [column, value] of Object.entries(row)) {
    if (typeof value !== 'string' || (value.isWellFormed() && !value.includes('\0'))) continue;
    throw invalid(column, 'must not contain U+0000 or half of a surrogate pair');
  }
}

/**
 * The row, which is as the vault wrote it.
 * @throws VaultError `integrity`, which names the row, if its data or any column that decides something was altered.
 */
export function requireProven<T extends ExplainedName>(
  keys: Keys,
  table: T,
  row: RowFromStore<T>,
): Row<T> {
  return openings[table](keys, row);
}

/** The row of that key, as the vault wrote it. @throws VaultError `integrity` like {@link requireProven}. */
export async function provenRow<T extends ProvenTable>(
  store: Pick<Store, 'get'>,
  keys: Keys,
  { table, key }: { readonly table: T; readonly key: Key<T> },
): Promise<Row<T> | undefined> {
  const row = await store.get(table, key);
  return row && requireProven(keys, table, row as RowFromStore<T>);
}

/** The row, as the vault wrote it. One that was altered is `undefined`, and is reported. */
export function ifProven<T extends ExplainedName>(
  tenant: Guarded,
  table: T,
  row: RowFromStore<T>,
): Row<T> | undefined {
  return tenant.quarantine.read(() => requireProven(tenant, table, row));
}

export interface ProvenRows<T extends ExplainedName> {
  readonly rows: readonly Row<T>[];
  readonly altered: readonly AlteredRow[];
}

/** The rows that are as the vault wrote them, in their order, and the names of the others, which are reported. */
export function provenRows<T extends ExplainedName>(
  tenant: Guarded,
  table: T,
  found: readonly RowFromStore<T>[],
): ProvenRows<T> {
  const rows: Row<T>[] = [];
  const altered: AlteredRow[] = [];
  for (const one of found) {
    const row = ifProven(tenant, table, one);
    if (row === undefined) altered.push(nameOf(table, one));
    else rows.push(row);
  }
  return { rows, altered };
}

/**
 * False for a row that was altered, without an alert: for those who compare rows with the log, or raise their own. A
 * test lists them.
 */
export function isProven<T extends ExplainedName>(
  keys: Keys,
  table: T,
  row: RowFromStore<T>,
): boolean {
  try {
    requireProven(keys, table, row);
    return true;
  } catch (error) {
    if (isIntegrityError(error)) return false;
    throw error;
  }
}

const openings: { readonly [T in ExplainedName]: (keys: Keys, row: RowFromStore<T>) => Row<T> } = {
  tenants: requiringProof('tenants'),
  applications: requiringProof('applications'),
  api_keys: requiringProof('api_keys'),
  sessions: requiringProof('sessions'),
  proxies: requiringProof('proxies'),
  reactors: requiringProof('reactors'),
  reactor_runs: requiringSeal('reactor_runs'),
  tenant_hosts: requiringProof('tenant_hosts'),
  client_keys: requiringProof('client_keys'),
  client_key_uses: requiringProof('client_key_uses'),
  webhooks: requiringProof('webhooks'),
  people: requiringProof('people'),
  console_links: requiringProof('console_links'),
  console_sessions: requiringProof('console_sessions'),
  sign_in_methods: requiringProof('sign_in_methods'),
  approvals: requiringProof('approvals'),
  tokens: requiringSeal('tokens'),
  token_intents: requiringSeal('token_intents'),
};

function requiringProof<T extends ProvenTable>(table: T) {
  return ({ keyring }: Keys, row: Unproven<T>): Row<T> => {
    const columns = unverifiedColumns(row);
    const { proof } = columns as { readonly proof: string | null };
    if (proof === null && isOlderThanProofs(table, columns)) return columns;
    if (proof !== null && rowProven(keyring, { table, row: provenText(table, columns), proof })) {
      return columns;
    }
    const altered = nameOf(table, row);
    throw integrityError(`the ${altered.entity} ${altered.id} was altered outside the vault`, {
      altered,
    });
  };
}

/** Before schema version 8, uses of encrypted values had neither a proof nor a name. */
function isOlderThanProofs(table: ProvenTable, row: object): boolean {
  return table === 'client_key_uses' && (row as AnyRow)['use_id'] === null;
}

function requiringSeal<T extends BoundTable>(table: T) {
  return (keys: Keys, row: Unproven<T>): Row<T> => requireBound(keys, table, row);
}

/** Columns that are written without a new proof: they record the use of a key, or withhold a tenant. */
const unprovenColumns: Readonly<Record<ProvenTable, readonly string[]>> = {
  tenants: ['proof', 'away_until'],
  applications: ['proof'],
  api_keys: ['proof', 'version', 'last_used_at'],
  sessions: ['proof'],
  proxies: ['proof'],
  tenant_hosts: ['proof'],
  reactors: ['proof'],
  client_keys: ['proof'],
  client_key_uses: ['proof'],
  webhooks: ['proof'],
  people: ['proof'],
  console_links: ['proof'],
  console_sessions: ['proof'],
  sign_in_methods: ['proof'],
  approvals: ['proof'],
};

const linkMaker = ['created_by', 'created_by_key', 'created_by_person'] as const;

/**
 * Columns that later releases added, together or one after the other. Those are left out behind which everything is
 * null, so that the string is the one that an earlier release proved, and its rows stay valid.
 */
const addedColumns: Partial<Readonly<Record<ProvenTable, readonly (readonly string[])[]>>> = {
  applications: [['origins'], ['egress_budget'], ['egress']],
  sessions: [['created_by_key', 'authorized_by_key']],
  console_links: [linkMaker],
  console_sessions: [linkMaker],
};

/** The columns in the order of the schema. JSON distinguishes null from strings. */
export function provenText(table: ProvenTable, row: object): string {
  const values = row as AnyRow;
  const added = addedColumns[table] ?? [];
  const used = added.findLastIndex((columns) =>
    columns.some((column) => (values[column] ?? null) !== null),
  );
  const absent = new Set(added.slice(used + 1).flat());
  return JSON.stringify(
    shapes[table].columns
      .filter((column) => !unprovenColumns[table].includes(column))
      .filter((column) => !absent.has(column))
      .map((column) => {
        const value = values[column] ?? null;
        return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
      }),
  );
}
