/** The one statement that commits a group on PostgreSQL: the rows of all its changes by table and action. */

import { amendedParts, isPartialUpdate } from '../amendments.ts';
import { columnsOf, type FlatChange, type RowOperation } from '../change.ts';
import type { ColumnKind } from '../columns.ts';
import type { Continuation } from '../log-chain/chain.ts';
import { countsItself } from '../migrations/0009-counts-in-statements.ts';
import { isCounted } from '../migrations/stored-sizes.ts';
import { kindsOf, storedForm } from '../stored-form.ts';
import { type AnyRow, type SqlValue, shapes, type Table } from '../tables.ts';
import { arrayTypes } from './array-types.ts';
import {
  ceilingConditions,
  ceilingValues,
  counterPart,
  countValues,
  countWritten,
  returnedOf,
  StatementBytes,
} from './counted-bytes.ts';

type RowValues = readonly SqlValue[];

/** An array of a column's values: as text, or bytes in PostgreSQL's binary form. */
type ArrayParameter = string | Buffer;

export interface Statement {
  /** The server keeps the plan of a statement that has a name. */
  readonly name?: string;
  readonly text: string;
  readonly values: readonly ArrayParameter[];
}

/** The form of a statement: the tables it touches and the actions on them. */
interface Shape {
  readonly text: string;
  readonly parts: readonly StatementPart[];
  name?: string;
  uses: number;
}

/** True for a statement whose changes have ceilings. */
type CeilingCheck = 'of one' | 'of several';

/** An action on the rows of one table. */
interface StatementPart {
  readonly action: RowOperation['action'];
  readonly table: Table;
  /** The values for each row. */
  readonly columns: readonly string[];
  readonly kinds: readonly ColumnKind[];
  /** The places, among those columns, of the ones that rows are sorted by. */
  readonly sortedBy: readonly number[];
  readonly count: ReturnType<typeof countWritten>;
}

/** Shapes with a name, which the server keeps for as long as the connection lasts. */
export const namedMax = 64;
/** A plan that is made more often than that is worth keeping. */
const usesUnnamed = 4;
/** Shapes remembered; there are a few dozen that the vault really uses. */
const shapesMax = 256;

/** For one connection at a time: names belong to it. */
export function createStatements() {
  const shapesByParts = new Map<string, Shape>();
  let named = 0;

  function shapeOf(parts: readonly string[], ceilings: CeilingCheck | undefined): Shape {
    const id = `${parts.join(', ')}${ceilings ? `, ceilings ${ceilings}` : ''}`;
    const known = shapesByParts.get(id) ?? newShape(parts, ceilings);
    if (known.uses === 0) remember(id, known);
    known.uses++;
    if (known.name === undefined && known.uses > usesUnnamed && named < namedMax) {
      known.name = `commit ${named++}`;
    }
    return known;
  }

  function remember(id: string, shape: Shape): void {
    if (shapesByParts.size >= shapesMax) {
      for (const [other, { name }] of shapesByParts) {
        if (name === undefined) shapesByParts.delete(other);
      }
    }
    shapesByParts.set(id, shape);
  }

  /** The statement that does all changes, counts their bytes, and writes what continues the log. */
  return (changes: readonly FlatChange[], { blocks }: Pick<Continuation, 'blocks'>): Statement => {
    const rowsByPart = new Map<string, RowValues[]>();
    const add = (part: string, values: RowValues) => {
      const rows = rowsByPart.get(part);
      if (rows) rows.push(values);
      else rowsByPart.set(part, [values]);
    };
    for (const change of changes) {
      for (const { action, table, values } of change.operations) add(`${action} ${table}`, values);
    }
    for (const { block } of blocks) {
      const row: AnyRow = { ...block };
      add(
        'insert logs',
        shapes.logs.columns.map((column) => row[column] ?? null),
      );
    }
    const names = [...rowsByPart.keys()].sort(byAction);
    const hasCeilings = changes.some(({ ceilings }) => ceilings.length > 0);
    const check = changes.length === 1 ? 'of one' : 'of several';
    const { name, text, parts } = shapeOf(names, hasCeilings ? check : undefined);
    const count = new StatementBytes();
    const values: ArrayParameter[] = [];
    for (const [index, part] of parts.entries()) {
      const rows = rowsByPart.get(names[index] ?? '') ?? [];
      if (part.sortedBy.length > 0) rows.sort((one, two) => compare(one, two, part.sortedBy));
      const stored = rows.map((row) =>
        part.kinds.map((kind, column) => storedForm(kind, row[column] ?? null)),
      );
      if (part.count)
        for (const [at, row] of rows.entries()) part.count(count, row, stored[at] ?? []);
      part.kinds.forEach((kind, column) => {
        values.push(
          arrayOf(
            stored.map((row) => row[column] ?? null),
            kind,
          ),
        );
      });
    }
    if (countsBytes(parts)) {
      values.push(...arraysOf(countValues(count), countKinds));
      if (hasCeilings) values.push(...arraysOf(ceilingValues(changes, count), ceilingKinds));
    }
    return { ...(name !== undefined && { name }), text, values };
  };
}

/** The parameters that {@link countValues} returns. */
const countKinds: readonly ColumnKind[] = ['tenant', 'id', 'integer'];
/** The parameters that {@link ceilingValues} returns. */
const ceilingKinds: readonly ColumnKind[] = ['text', 'tenant', 'id', 'integer', 'integer'];

function arraysOf(lists: readonly SqlValue[][], kinds: readonly ColumnKind[]): ArrayParameter[] {
  return lists.map((list, at) => arrayOf(list, kinds[at] ?? 'text'));
}

/** Partial updates of counted tables write values that are as long as before. */
function changesBytes(action: RowOperation['action']): boolean {
  return !isPartialUpdate(action);
}

function countsBytes(parts: readonly StatementPart[]): boolean {
  return parts.some(({ action, table }) => changesBytes(action) && isCounted(table));
}

const actionsInOrder: readonly string[] = [
  'clear',
  'remove',
  'replace',
  'amend',
  'reseal',
  'refingerprint',
  'insert',
];

/** A database of several machines does the parts one after the other: what makes room comes first. */
function byAction(one: string, other: string): number {
  const [a = '', b = ''] = [one, other].map((name) => name.slice(0, name.indexOf(' ')));
  const order = actionsInOrder.indexOf(a) - actionsInOrder.indexOf(b);
  return order === 0 ? Number(one > other) - Number(one < other) : order;
}

function newShape(names: readonly string[], ceilings: CeilingCheck | undefined): Shape {
  const parts = names.map((name) =>
    partOf(...(name.split(' ') as [RowOperation['action'], Table])),
  );
  return { parts, text: textOf(parts, ceilings), uses: 0 };
}

function partOf(action: RowOperation['action'], table: Table): StatementPart {
  const columns = columnsOf(table, action);
  const placeOf = (column: string) => columns.indexOf(column);
  return {
    action,
    table,
    columns,
    kinds: kindsOf(table, action),
    sortedBy: lockedBy(action, table).map(placeOf),
    count: countWritten(table, action, columns),
  };
}

/**
 * Two statements that wait for each other's rows would deadlock, unless both take theirs in one order.
 * Of what is inserted, others wait for the values that must be unique; the log's rows are a lane's own.
 */
function lockedBy(action: RowOperation['action'], table: Table): readonly string[] {
  if (table === 'logs' && action === 'insert') return [];
  const { key, unique } = shapes[table];
  if (action === 'clear') return columnsOf(table, action);
  return action === 'insert' ? [...Object.values(unique).flat(), ...key] : key;
}

function compare(one: RowValues, two: RowValues, places: readonly number[]): number {
  for (const place of places) {
    const [a, b] = [one[place] ?? '', two[place] ?? ''];
    if (a !== b) return a < b ? -1 : 1;
  }
  return 0;
}

/** Stored values as PostgreSQL reads an array. What cannot be written so fails before anything is sent. */
function arrayOf(values: readonly SqlValue[], kind: ColumnKind): ArrayParameter {
  if (arrayTypes[kind] === arrayTypes.bytes) return bytesArray(values as (Uint8Array | null)[]);
  const write = kind === 'text' ? quoted : String;
  let text = '{';
  for (const value of values) {
    text += `${text.length > 1 ? ',' : ''}${value === null ? 'NULL' : write(value)}`;
  }
  return `${text}}`;
}

const special = /["\\]/;

function quoted(value: SqlValue): string {
  const text = String(value);
  return special.test(text) ? `"${text.replace(/["\\]/g, '\\$&')}"` : `"${text}"`;
}

const byteaType = 17;

/**
 * One dimension from index 1, as `array_recv` takes it. Written as text, bytes would be twice as long and
 * be read character by character.
 */
function bytesArray(values: readonly (Uint8Array | null)[]): Buffer {
  const header = [1, values.includes(null) ? 1 : 0, byteaType, values.length, 1];
  const lengths = values.map((value) => value?.byteLength ?? 0);
  const size = 4 * (header.length + values.length) + lengths.reduce((sum, one) => sum + one, 0);
  const array = Buffer.allocUnsafe(size);
  let end = 0;
  for (const number of header) end = array.writeInt32BE(number, end);
  for (const value of values) {
    end = array.writeInt32BE(value === null ? -1 : value.byteLength, end);
    if (value !== null) array.set(value, end);
    end += value?.byteLength ?? 0;
  }
  return array;
}

/**
 * A statement of one common table expression per part. The outer query divides by zero, and so undoes
 * everything, unless each guarded part has touched as many rows as it was given.
 *
 * A change may remove a row, or give up a unique value, and insert another in its place. The guards
 * read what removals and replacements return, so these are done before the outer query has its row;
 * nothing reads the insertions, which PostgreSQL does after that. Citus does all parts first, in their order.
 */
function textOf(parts: readonly StatementPart[], ceilings: CeilingCheck | undefined): string {
  let parameter = 0;
  const parametersFor = (kinds: readonly ColumnKind[]) =>
    kinds.map((kind) => `$${++parameter}::${arrayTypes[kind]}`);
  const expressions: string[] = [];
  const guards: string[] = [];
  const gone: string[] = [];
  parts.forEach((part, index) => {
    const lists = parametersFor(part.kinds);
    expressions.push(`p${index} as (${bodyOf(part, `unnest(${lists.join(', ')})`)})`);
    if (part.action === 'insert') return;
    const given = part.action === 'clear' ? '>= 0' : `= cardinality(${lists[0]})`;
    guards.push(`(select count(*) from p${index}) ${given}`);
    if (changesBytes(part.action) && isCounted(part.table)) gone.push(`p${index}`);
  });
  if (countsBytes(parts)) {
    expressions.push(`counters as (${counterPart(parametersFor(countKinds), gone)})`);
    if (ceilings !== undefined) {
      const given = parametersFor(ceilingKinds);
      const isOfOne = ceilings === 'of one';
      guards.unshift(...ceilingConditions({ given, gone, counters: 'counters', isOfOne }));
    }
    guards.unshift(countsItself);
  }
  const guard =
    guards.length === 0 ? '1' : `1 / (case when ${guards.join(' and ')} then 1 else 0 end)`;
  return `with ${expressions.join(', ')} select ${guard}`;
}

function bodyOf({ action, table, columns }: StatementPart, source: string): string {
  const { key } = shapes[table];
  if (action === 'insert')
    return `insert into ${table} (${columns.join(', ')}) select * from ${source}`;
  if (action === 'replace') {
    const assignments = columns.map((column) => `${column} = n.${column}`);
    const same = key.map((column) => `t.${column} = n.${column}`);
    // An update returns the new row, so the stored one is read in the same statement.
    const before = isCounted(table) ? `, ${table} as before` : '';
    if (before) same.push(...key.map((column) => `before.${column} = t.${column}`));
    return `update ${table} t set ${assignments.join(', ')}
      from ${source} as n (${columns.join(', ')})${before}
      where ${same.join(' and ')} and t.version = n.version - 1 returning ${returnedOf(table, 'before')}`;
  }
  if (isPartialUpdate(action)) {
    const parts = amendedParts(action, table);
    const assignments = parts.filter(({ isCondition }) => !isCondition);
    const conditions = parts.filter(({ isCondition }) => isCondition);
    const are = conditions.map((one) => `t.${one.column} is not distinct from n.${one.value}`);
    const same = [...key.map((column) => `t.${column} = n.${column}`), ...are];
    return `update ${table} t set ${assignments.map((one) => `${one.column} = n.${one.value}`).join(', ')}
      from ${source} as n (${columns.join(', ')}) where ${same.join(' and ')} returning 1`;
  }
  const same = columns.map((column) => `t.${column} = n.${column}`);
  return `delete from ${table} t using ${source} as n (${columns.join(', ')})
    where ${same.join(' and ')} returning ${returnedOf(table, 't')}`;
}
