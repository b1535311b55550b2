/** The one statement that commits a group on PostgreSQL: the rows of all its changes by table and action. */

import { amendedParts } from '../amendments.ts';
import { columnsOf, type FlatChange, type RowOperation } from '../change.ts';
import type { ColumnKind } from '../columns.ts';
import type { StorageCeiling } from '../growth.ts';
import type { Continuation } from '../log-chain/chain.ts';
import { idBytes, kindsOf, storedForm, tenantNumber } from '../stored-form.ts';
import { type AnyRow, type SqlValue, shapes, type Table } from '../tables.ts';
import { arrayTypes } from './array-types.ts';

type RowValues = readonly SqlValue[];

/** An array of a column's values: as text, or bytes in PostgreSQL's binary form. */
type ArrayParameter = string | Buffer;

export interface Statement {
  /** The server keeps the plan of a statement that has a name. */
  readonly name?: string;
  readonly text: string;
  readonly values: readonly ArrayParameter[];
}

/** What differs between statements: the tables they touch and the ways in which they do. */
interface Shape {
  readonly text: string;
  /** How its last parameter says what storage quotas permit, if it does. */
  readonly ceilings: CeilingCheck | undefined;
  readonly parts: readonly StatementPart[];
  name?: string;
  uses: number;
}

/**
 * Of one change, what it adds in all is compared. Of several, all that is stored: one that stores less would let
 * through another that stores more, so the group fails and each change is tried alone.
 */
type CeilingCheck = 'net' | 'total';

/** An action on the rows of one table. */
interface StatementPart {
  readonly action: RowOperation['action'];
  readonly table: Table;
  /** What is given for each row. */
  readonly columns: readonly string[];
  readonly kinds: readonly ColumnKind[];
  /** The places, among those columns, of the ones that rows are sorted by. */
  readonly sortedBy: readonly number[];
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
    const id = `${parts.join(', ')}${ceilings ? `, ${ceilings} ceilings` : ''}`;
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

  /**
   * The statement that does all changes, and writes what continues the log.
   * @param isDistributed then the database counts no bytes, and its functions are not called.
   */
  return (
    changes: readonly FlatChange[],
    { blocks }: Pick<Continuation, 'blocks'>,
    isDistributed = false,
  ): Statement => {
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
    const ceilings = changes.flatMap((change) => change.ceilings);
    const check = changes.length === 1 && !isDistributed ? 'net' : 'total';
    const { name, text, parts } = shapeOf(names, ceilings.length > 0 ? check : undefined);
    const values: ArrayParameter[] = parts.flatMap((part, index) => {
      const rows = rowsByPart.get(names[index] ?? '') ?? [];
      if (part.sortedBy.length > 0) rows.sort((one, two) => compare(one, two, part.sortedBy));
      return part.kinds.map((kind, column) => arrayOf(rows, column, kind));
    });
    if (ceilings.length > 0) values.push(ceilingsText(ceilings));
    return { ...(name !== undefined && { name }), text, values };
  };
}

/** As the function `check_stored_bytes` of the database reads them, each once. */
function ceilingsText(ceilings: readonly StorageCeiling[]): string {
  const texts = ceilings.map(({ quota, tenant_id, application_id, bytes }) =>
    JSON.stringify({
      quota,
      tenant: tenantNumber(tenant_id),
      ...(application_id && { application: idBytes(application_id).toString('hex') }),
      bytes,
    }),
  );
  return `[${[...new Set(texts)].join(',')}]`;
}

const actionsInOrder: readonly string[] = ['clear', 'remove', 'replace', 'amend', 'insert'];

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
  return { parts, text: textOf(parts, ceilings), ceilings, uses: 0 };
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

/** The column as PostgreSQL reads an array. What cannot be written so fails before anything is sent. */
function arrayOf(rows: readonly RowValues[], column: number, kind: ColumnKind): ArrayParameter {
  const values = rows.map((row) => storedForm(kind, row[column] ?? null));
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
 * nothing reads the insertions, which PostgreSQL does after that.
 */
function textOf(parts: readonly StatementPart[], ceilings: CeilingCheck | undefined): string {
  let parameter = 0;
  const expressions: string[] = [];
  const guards: string[] = [];
  parts.forEach((part, index) => {
    const first = parameter + 1;
    const lists = part.kinds.map((kind) => `$${++parameter}::${arrayTypes[kind]}`);
    expressions.push(`p${index} as (${bodyOf(part, `unnest(${lists.join(', ')})`)})`);
    if (part.action === 'insert') return;
    const list = `$${first}::${arrayTypes[part.kinds[0] ?? 'text']}`;
    const given = part.action === 'clear' ? '>= 0' : `= cardinality(${list})`;
    guards.push(`(select count(*) from p${index}) ${given}`);
  });
  // For the triggers that count, which run when the rest of the statement is done.
  if (ceilings !== undefined) {
    const given = `$${++parameter}::text`;
    guards.unshift(
      ceilings === 'net'
        ? `begin_stored_bytes(${given})`
        : `set_config('strongroom.ceilings', ${given}, true) is not null`,
    );
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
    return `update ${table} t set ${assignments.join(', ')}
      from ${source} as n (${columns.join(', ')})
      where ${same.join(' and ')} and t.version = n.version - 1 returning 1`;
  }
  if (action === 'amend') {
    const parts = amendedParts(table);
    const assignments = parts.filter(({ isCondition }) => !isCondition);
    const conditions = parts.filter(({ isCondition }) => isCondition);
    const are = conditions.map((one) => `t.${one.column} is not distinct from n.${one.value}`);
    const same = [...key.map((column) => `t.${column} = n.${column}`), ...are];
    return `update ${table} t set ${assignments.map((one) => `${one.column} = n.${one.value}`).join(', ')}
      from ${source} as n (${columns.join(', ')}) where ${same.join(' and ')} returning 1`;
  }
  const same = columns.map((column) => `t.${column} = n.${column}`);
  return `delete from ${table} t using ${source} as n (${columns.join(', ')})
    where ${same.join(' and ')} returning 1`;
}
