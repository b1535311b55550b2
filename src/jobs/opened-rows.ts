/** What is due is removed only where it opens: an expiry that was altered would let the vault itself destroy data. */
import type { Tenant } from '../rules/tenant.ts';
import { rowsWithIds, type SizedDue } from '../store/queries/tenant-rows.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { requireBound } from '../values/sealed-row.ts';
import { requireBoundIntent } from '../vault/token-intents/row.ts';
import { undamaged } from './batches.ts';

/** Sealed bytes that are read together, unless a single row has more. */
const bytesAtOnceMax = 4_194_304;

const openings: {
  readonly [T in 'tokens' | 'token_intents']: {
    readonly id: keyof Row<T> & string;
    readonly require: (tenant: Tenant, row: Row<T>) => void;
  };
} = {
  tokens: { id: 'token_id', require: requireBound },
  token_intents: { id: 'token_intent_id', require: requireBoundIntent },
};

/**
 * The rows that are as the vault wrote them, in the version in which they were found: one that was changed
 * since is a conflict when it is removed.
 */
export async function openedRows<T extends keyof typeof openings>(
  store: Store,
  tenant: Tenant,
  { table, found }: { readonly table: T; readonly found: readonly SizedDue<T>[] },
): Promise<ReturnType<typeof undamaged<SizedDue<T>, SizedDue<T>>>> {
  const { id, require } = openings[table];
  const nameOf = (row: object) => String((row as Readonly<Record<string, unknown>>)[id]);
  const done: SizedDue<T>[] = [];
  let damage: ReturnType<typeof undamaged>['damage'];
  for (const part of partsOf(found)) {
    const query = { tenant: tenant.id, column: id, ids: part.map(nameOf) };
    const rows = await store.select(rowsWithIds<T>(table, query));
    const stored = new Map(rows.map((row) => [nameOf(row), row]));
    const opened = undamaged(part, (one) => {
      const row = stored.get(nameOf(one));
      if (row) require(tenant, row);
      return one;
    });
    done.push(...opened.done);
    damage ??= opened.damage;
  }
  return { done, damage };
}

function partsOf<R extends { readonly bytes: number }>(rows: readonly R[]): readonly R[][] {
  const parts: R[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const row of rows) {
    bytes += Number(row.bytes);
    if (bytes > bytesAtOnceMax) {
      parts.push([]);
      bytes = Number(row.bytes);
    }
    parts.at(-1)?.push(row);
  }
  return parts;
}
