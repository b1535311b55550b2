/** The rows that references lead to, in a query for each table, while they are not too large together. */
import type { Reference } from '../../expressions/reading.ts';
import { parseTokenId, parseUuid, type TenantId, type TokenIntentId } from '../../lib/ids.ts';
import {
  type SealedTable,
  type SmallRow,
  sealedIds,
  smallRows,
} from '../../store/queries/small-rows.ts';
import type { Store } from '../../store/store.ts';
import type { Key, Row } from '../../store/tables.ts';
import { dataLengthMax } from '../../values/contents.ts';

/** Bytes that all tokens and token intents of one request may have, as they are stored. */
export const referencedBytesMax = 4_194_304;

/** So few are within the limit however large each is. */
const wholeRowsMax = referencedBytesMax / dataLengthMax;

type RowsById<T extends SealedTable> = ReadonlyMap<string, Row<T>>;

/** Expired ones included. */
export interface ReferencedRows {
  readonly tokens: RowsById<'tokens'>;
  readonly token_intents: RowsById<'token_intents'>;
}

/** `undefined` where they are larger than {@link referencedBytesMax} together. Large ones are read after that. */
export async function referencedRows(
  store: Store,
  tenant: TenantId,
  references: readonly Reference[],
): Promise<ReferencedRows | undefined> {
  const ids = idsOf(references);
  const tokens = lookUp(store, tenant, 'tokens', ids.tokens);
  const intents = lookUp(store, tenant, 'token_intents', ids.intents);
  // What is asked for by its key in one turn of the event loop is one query, of all requests.
  if (ids.tokens.length + ids.intents.length <= wholeRowsMax) {
    const [byToken, byIntent] = await Promise.all([tokens.byKey(), intents.byKey()]);
    return { tokens: byToken, token_intents: byIntent };
  }
  const left = { bytes: referencedBytesMax };
  const small = await tokens.small(left);
  const smallIntents = await intents.small(left);
  if (left.bytes < 0) return undefined;
  const [all, allIntents] = await Promise.all([tokens.all(small), intents.all(smallIntents)]);
  return { tokens: all, token_intents: allIntents };
}

function idsOf(references: readonly Reference[]) {
  const tokens = new Set<string>();
  const intents = new Set<string>();
  for (const { kind, id } of references) {
    const isIntent = kind === 'token_intent';
    const parsed = isIntent ? parseUuid<TokenIntentId>(id) : parseTokenId(id);
    if (parsed !== undefined) (isIntent ? intents : tokens).add(parsed);
  }
  return { tokens: [...tokens], intents: [...intents] };
}

/** @param ids as they are stored, each once. */
function lookUp<T extends SealedTable>(
  store: Store,
  tenant_id: TenantId,
  table: T,
  ids: readonly string[],
) {
  const column = sealedIds[table];
  const rowOf = (id: string) => store.get(table, { tenant_id, [column]: id } as unknown as Key<T>);
  const idOf = (row: object) => (row as Record<string, string>)[column] as string;

  async function byKey(wanted = ids): Promise<Map<string, Row<T>>> {
    const rows = await Promise.all(wanted.map(rowOf));
    return new Map(rows.flatMap((row) => (row ? [[idOf(row), row]] : [])));
  }

  return {
    byKey,
    /** One query after the other, and none once they have more bytes than are left. */
    small: async (left: { bytes: number }): Promise<readonly SmallRow<T>[]> => {
      const rows: SmallRow<T>[] = [];
      for (const query of smallRows(table, tenant_id, ids)) {
        if (left.bytes < 0) break;
        const found = await store.select(query);
        rows.push(...found);
        left.bytes -= found.reduce((sum, { bytes }) => sum + Number(bytes), 0);
      }
      return rows;
    },
    all: async (rows: readonly SmallRow<T>[]): Promise<RowsById<T>> => {
      const large = rows.filter(({ data }) => data === null).map(idOf);
      const found = await byKey(large);
      for (const row of rows) if (row.data !== null) found.set(idOf(row), row as unknown as Row<T>);
      return found;
    },
  };
}
