/**
 * The rows of references, read in two steps: first what the rules need, with all small values, and, once all of it
 * is permitted, the large values.
 */

import { parseTokenId, parseUuid, type TenantId } from '../../base/ids.ts';
import type { Reference } from '../../expressions/reading.ts';
import {
  idsMax,
  type SealedTable,
  type SmallRow,
  sealedTables,
  smallRows,
} from '../../store/queries/small-rows.ts';
import type { Query, Store } from '../../store/store.ts';
import { isWhole, type Unproven } from '../../store/stored-row.ts';
import type { Key } from '../../store/tables.ts';

/** Bytes that all tokens and token intents of one request may have, as they are stored. */
export const referencedBytesMax = 4_194_304;

/** Up to so many bytes a row is read whole at once. */
const smallBytesMax = 8_192;

/** So few are read whole, however large each is. */
const wholeRowsMax = 4;

type RowsById<T extends SealedTable> = ReadonlyMap<string, SmallRow<T>>;

/** By their ids; expired ones included. */
export interface ReferencedRows {
  readonly tokens: RowsById<'tokens'>;
  readonly token_intents: RowsById<'token_intents'>;
}

/** Large values have no data yet; see {@link wholeRows}. */
export async function referencedRows(
  store: Store,
  tenant: TenantId,
  references: readonly Reference[],
): Promise<ReferencedRows> {
  const ids = idsOf(references);
  const isFew = ids.tokens.length + ids.intents.length <= wholeRowsMax;
  // Reads by key in one turn of the event loop become one query for all requests.
  const rowsOf = isFew ? readByKey : readSmall;
  const tokens = await rowsOf(store, { tenant, table: 'tokens', ids: ids.tokens });
  const token_intents = await rowsOf(store, { tenant, table: 'token_intents', ids: ids.intents });
  return { tokens, token_intents };
}

/** The same rows, and where some are not small, those with all their data, as they are by then. */
export async function wholeRows(
  store: Store,
  tenant: TenantId,
  rows: ReferencedRows,
): Promise<ReferencedRows> {
  const large = { tokens: largeIds(rows.tokens), intents: largeIds(rows.token_intents) };
  if (large.tokens.length + large.intents.length === 0) return rows;
  const read = {
    tokens: await readByKey(store, { tenant, table: 'tokens', ids: large.tokens }),
    intents: await readByKey(store, { tenant, table: 'token_intents', ids: large.intents }),
  };
  return {
    tokens: replaced(rows.tokens, read.tokens),
    token_intents: replaced(rows.token_intents, read.intents),
  };
}

function idsOf(references: readonly Reference[]) {
  const tokens = new Set<string>();
  const intents = new Set<string>();
  for (const { kind, id } of references) {
    const isIntent = kind === 'token_intent';
    const parsed = isIntent ? parseUuid(id) : parseTokenId(id);
    if (parsed !== undefined) (isIntent ? intents : tokens).add(parsed);
  }
  return { tokens: [...tokens], intents: [...intents] };
}

interface RowsWanted<T extends SealedTable> {
  readonly tenant: TenantId;
  readonly table: T;
  /** As they are stored, each once. */
  readonly ids: readonly string[];
}

async function readByKey<T extends SealedTable>(
  store: Store,
  { tenant: tenant_id, table, ids }: RowsWanted<T>,
): Promise<Map<string, SmallRow<T>>> {
  const keys = ids.map((id) => ({ tenant_id, [sealedTables[table].id]: id }) as unknown as Key<T>);
  const rows = await Promise.all(keys.map((key) => store.get(table, key)));
  const found = rows.filter((row) => row !== undefined) as unknown as Unproven<T>[];
  return byId(
    table,
    found.map((row) => ({ ...row, bytes: bytesOfRow(table, row) })),
  );
}

function bytesOfRow<T extends SealedTable>(table: T, row: Unproven<T>): number {
  const values = row as unknown as Readonly<Record<string, string | Uint8Array | null>>;
  return sealedTables[table].large.reduce(
    (sum, name) => sum + Buffer.byteLength(values[name] ?? ''),
    0,
  );
}

/** One query after the other. Once there is too much already, no more data is read with the rows. */
async function readSmall<T extends SealedTable>(
  store: Store,
  { tenant, table, ids }: RowsWanted<T>,
): Promise<Map<string, SmallRow<T>>> {
  const rows: SmallRow<T>[] = [];
  let bytes = 0;
  for (let at = 0; at < ids.length; at += idsMax) {
    const [first = '', ...others] = ids.slice(at, at + idsMax);
    const wanted = {
      ids: [first, ...others],
      smallBytesMax: bytes > referencedBytesMax ? 0 : smallBytesMax,
    } as const;
    const query = smallRows(table, tenant, wanted) as Query<SmallRow<SealedTable>>;
    const found = (await store.select(query)) as unknown as SmallRow<T>[];
    for (const row of found) bytes += row.bytes;
    rows.push(...found);
  }
  return byId(table, rows);
}

function byId<T extends SealedTable>(table: T, rows: readonly SmallRow<T>[]) {
  const { id } = sealedTables[table];
  return new Map(rows.map((row) => [(row as unknown as Record<string, string>)[id] ?? '', row]));
}

function largeIds(rows: RowsById<'tokens'> | RowsById<'token_intents'>): string[] {
  const ids: string[] = [];
  for (const [id, row] of rows) if (!isWhole(row)) ids.push(id);
  return ids;
}

/** Without those that are gone by now. */
function replaced<T extends SealedTable>(small: RowsById<T>, large: RowsById<T>): RowsById<T> {
  const kept = [...small].filter(([, row]) => isWhole(row as unknown as SmallRow<'tokens'>));
  return new Map([...kept, ...large]);
}
