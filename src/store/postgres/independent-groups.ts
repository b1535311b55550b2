/** Divides changes into those that may share a statement, and orders the statements. */
import { isPartialUpdate } from '../amendments.ts';
import { columnsOf, type FlatChange, type RowOperation } from '../change.ts';
import { type SqlValue, shapes } from '../tables.ts';

/**
 * One statement sees one snapshot, and removes rows before it inserts any: two changes of the same row cannot share
 * it, also where one of them makes the row. The second waits for the next group, so that the log tells in which order
 * they happened. A row that is only made needs no such care: a duplicate key fails the group and is sorted out.
 */
export function independentGroups(changes: readonly FlatChange[]): FlatChange[][] {
  const changed = new Set(changes.flatMap(({ operations }) => rowsOf(operations.filter(isChange))));
  const groups: { changes: FlatChange[]; touched: Set<string> }[] = [];
  for (const change of changes) {
    const touched =
      changed.size === 0 ? [] : rowsOf(change.operations).filter((row) => changed.has(row));
    let group = groups.find((candidate) => touched.every((row) => !candidate.touched.has(row)));
    if (!group) {
      group = { changes: [], touched: new Set() };
      groups.push(group);
    }
    group.changes.push(change);
    for (const row of touched) group.touched.add(row);
  }
  return groups.map((group) => group.changes);
}

const isChange = ({ action }: RowOperation) => action !== 'insert';

const rowsOf = (operations: readonly RowOperation[]) =>
  operations.map((operation) => `${operation.table} ${JSON.stringify(keyOf(operation))}`);

/** The same for each tenant separately. Their statements take turns, so that no tenant waits for a row of another. */
export function independentGroupsByTenant(changes: readonly FlatChange[]): FlatChange[][] {
  const byTenant = [...Map.groupBy(changes, tenantOf).values()].map(independentGroups);
  const turns = Math.max(0, ...byTenant.map((groups) => groups.length));
  return Array.from({ length: turns }, (_, turn) =>
    byTenant.flatMap((groups) => groups.slice(turn, turn + 1)),
  ).flat();
}

/**
 * The tenant whose rows a change has. On a database of several machines a statement stays within one, whose trouble
 * is no other's.
 */
export function tenantOf({
  entries: [entry],
  operations: [operation],
}: FlatChange): SqlValue | undefined {
  if (entry) return entry.tenant_id;
  if (operation === undefined) return undefined;
  const { table, action, values } = operation;
  return values[columnsOf(table, action).indexOf('tenant_id')];
}

function keyOf({ table, action, values }: RowOperation): readonly SqlValue[] {
  const { key, columns } = shapes[table];
  if (action === 'clear') return values;
  if (action === 'remove' || isPartialUpdate(action)) return values.slice(0, key.length);
  return key.map((column) => values[columns.indexOf(column)] ?? null);
}
