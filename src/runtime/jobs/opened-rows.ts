/** Removes due rows only if they open: otherwise an altered expiry would have the vault destroy data itself. */
import { integrityError, type VaultError } from '../../base/errors.ts';
import { requireProven } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { RemovedRow } from '../../store/change.ts';
import { rowsWithIds, type SizedDue } from '../../store/queries/tenant-rows.ts';
import { explainedTables } from '../../store/row-states.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import type { BatchRun } from './batches.ts';

/** Sealed bytes that are read together, unless a single row has more. */
const bytesAtOnceMax = 4_194_304;

interface FoundRows<T extends OpenedTable> {
  readonly table: T;
  readonly found: readonly SizedDue<T>[];
  /** The row as a change removes it. */
  readonly removed: (row: Row<T>) => RemovedRow<T>;
}

type OpenedTable = 'tokens' | 'token_intents';

export interface OpenedRows<T extends OpenedTable> {
  readonly done: readonly RemovedRow<T>[];
  /** Rows that were not there when they were looked up. */
  readonly absent: number;
}

/** Opens what one run of a job finds, batch by batch. */
export type OpenRows = <T extends OpenedTable>(
  run: Pick<BatchRun, 'tenant'>,
  found: FoundRows<T>,
) => Promise<OpenedRows<T>>;

/**
 * Returns the rows that are as the vault wrote them, in the version in which they were found: removing a row that
 * changed since is a conflict. A row that is gone was removed by another process. If it is found again, its id is not
 * stored in the vault's form, so it is damage: no job could remove it.
 */
export function createRowOpening(store: Pick<Store, 'select'>): OpenRows {
  const absentBefore = new Set<string>();

  /** Throws the second time. */
  function noteAbsent(tenant: Tenant, entity: string, id: string): void {
    const name = `${tenant.id} ${id}`;
    if (absentBefore.has(name)) throw notAsStored(entity, id);
    absentBefore.add(name);
  }

  return async ({ tenant }, { table, found, removed }) => {
    const { entity, id } = explainedTables[table];
    const nameOf = (row: object) => String((row as Readonly<Record<string, unknown>>)[id]);
    const done: ReturnType<typeof removed>[] = [];
    let absent = 0;
    for (const part of partsOf(found)) {
      const query = { tenant: tenant.id, column: id, ids: part.map(nameOf) };
      const rows = await store.select(rowsWithIds<OpenedTable>(table, query));
      const stored = new Map(rows.map((row) => [nameOf(row), row]));
      for (const one of part) {
        tenant.quarantine.read(() => {
          const row = stored.get(nameOf(one));
          if (row) {
            const proven = requireProven<OpenedTable>(tenant, table, row);
            done.push({
              ...removed(proven as Parameters<typeof removed>[0]),
              version: one.version,
            });
          } else {
            noteAbsent(tenant, entity, nameOf(one));
            absent++;
          }
        });
      }
    }
    return { done, absent };
  };
}

function notAsStored(entity: string, id: string): VaultError {
  return integrityError(`the id of a ${entity} was altered outside the vault`, {
    altered: { entity, id },
  });
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
