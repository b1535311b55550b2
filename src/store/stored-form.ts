/** The stored form of identifiers and digests: strings for the vault, fewer bytes on the disk. */

import { formatUuid } from '../base/ids.ts';
import { columnOfValue } from './amendments.ts';
import { columnsOf, type RowOperation } from './change.ts';
import type { ColumnKind } from './columns.ts';
import { type AnyRow, kindOf, type SqlValue, shapes, type Table } from './tables.ts';

/** The value of a column as the database holds it. Null is null in every form. */
export function storedForm(kind: ColumnKind, value: SqlValue): SqlValue {
  return typeof value === 'string' ? (write[kind]?.(value) ?? value) : value;
}

/** What {@link storedForm} was made of. */
export function valueOfStored(kind: ColumnKind, stored: SqlValue): SqlValue {
  return stored === null ? null : (read[kind]?.(stored) ?? stored);
}

/** The values of an operation as the database holds them. */
export function storedValues({ table, action, values }: RowOperation): readonly SqlValue[] {
  const converted = convertedIn(table, action);
  if (converted.length === 0) return values;
  const stored = [...values];
  for (const { place, kind } of converted) stored[place] = storedForm(kind, values[place] ?? null);
  return stored;
}

/** The kinds of the columns that {@link columnsOf} lists. */
export function kindsOf(table: Table, action: RowOperation['action']): readonly ColumnKind[] {
  return columnsOf(table, action).map((value) => kindOf(table, columnOfValue(value)));
}

interface ConvertedColumn {
  readonly place: number;
  readonly kind: ColumnKind;
}

const convertedByOperation = new Map<string, readonly ConvertedColumn[]>();

function convertedIn(table: Table, action: RowOperation['action']): readonly ConvertedColumn[] {
  const name = `${action} ${table}`;
  const known = convertedByOperation.get(name);
  if (known) return known;
  const converted = kindsOf(table, action)
    .map((kind, place) => ({ kind, place }))
    .filter(({ kind }) => write[kind] !== undefined);
  convertedByOperation.set(name, converted);
  return converted;
}

/** A key, in the order of its columns, as the database holds it. */
export function storedKey(table: Table, key: readonly SqlValue[]): SqlValue[] {
  const { key: names } = shapes[table];
  return key.map((value, place) => storedForm(kindOf(table, names[place] ?? ''), value));
}

type MutableRow = Record<string, SqlValue>;

/** The columns of a table that are not its key. */
export function nonKeyColumns(table: Table): readonly string[] {
  const { columns, key } = shapes[table];
  return columns.filter((column) => !key.includes(column));
}

interface ReadColumn {
  readonly name: string;
  readonly read: (stored: SqlValue) => SqlValue;
}

/**
 * Makes rows with all of the names out of values, in the order of the columns. Copies of one shape are fast to
 * work with.
 */
function rowFiller(names: readonly string[], columns: readonly ReadColumn[]) {
  const empty: MutableRow = Object.fromEntries(names.map((name) => [name, null]));
  return (values: readonly SqlValue[]): MutableRow => {
    const row = { ...empty };
    columns.forEach(({ name, read }, place) => {
      row[name] = read(values[place] ?? null);
    });
    return row;
  };
}

/** Creates rows of a table from a key and the stored values of {@link nonKeyColumns}. */
export function rowReader(table: Table): (key: AnyRow, stored: readonly SqlValue[]) => MutableRow {
  const { columns, key: keyColumns } = shapes[table];
  const others = nonKeyColumns(table).map((name) => {
    const kind = kindOf(table, name);
    return { name, read: (stored: SqlValue) => valueOfStored(kind, stored) };
  });
  const fill = rowFiller(columns, others);
  return (key, stored) => {
    const row = fill(stored);
    for (const column of keyColumns) row[column] = key[column] ?? null;
    return row;
  };
}

/**
 * The rows that a query gave, with texts in place of stored forms. Columns are known by their names, which
 * mean the same in every table; where other tables hold the text itself, it stays as it is.
 */
export function readRows<R>(rows: R[]): R[] {
  const [first] = rows as MutableRow[];
  if (first === undefined) return rows;
  for (const name in first) {
    const converted = convertedNames.get(name);
    if (converted === undefined) continue;
    for (const row of rows as MutableRow[]) {
      row[name] = valueOfNamed(converted, row[name] ?? null);
    }
  }
  return rows;
}

/** Makes what {@link readRows} gives out of lists of values, in the order of the names. */
export function namedRowReader(
  names: readonly string[],
): (stored: readonly SqlValue[]) => MutableRow {
  const columns = names.map((name) => {
    const converted = convertedNames.get(name);
    const read = (stored: SqlValue) => (converted ? valueOfNamed(converted, stored) : stored);
    return { name, read };
  });
  return rowFiller(names, columns);
}

function valueOfNamed({ kind, isTextElsewhere }: ConvertedName, stored: SqlValue): SqlValue {
  return isTextElsewhere && typeof stored === 'string' ? stored : valueOfStored(kind, stored);
}

/** The first 32 bits of the tenant's UUID, which no two tenants of a vault share. */
export function tenantNumber(tenant: string): number {
  const number = Number.parseInt(tenant.slice(0, 8), 16) | 0;
  if (younger.get(number) !== tenant) remember(number, tenant);
  return number;
}

/** `undefined` for a tenant whose number was not computed recently. */
export function tenantOfNumber(number: number): string | undefined {
  return younger.get(number) ?? older.get(number);
}

/** The older half is dropped as a whole, which must not happen between a query and the reading of its rows. */
const numbersMax = 50_000;

/** A query needs the tenant's number to find its rows, so the number was computed before. */
let younger = new Map<number, string>();
let older = new Map<number, string>();

function remember(number: number, tenant: string): void {
  if (younger.size >= numbersMax) {
    older = younger;
    younger = new Map();
  }
  younger.set(number, tenant);
}

const anyUuid = '00000000-0000-0000-0000-000000000000';
const uuidMark = 1;
const uuidBytes = 17;
const textMark = 2;

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * A mark, then the 16 bytes of a UUID or the UTF-8 of any other text. So ids of one form sort as their
 * texts do.
 */
export function idBytes(id: string): Buffer {
  return uuidBytesOf(id) ?? textBytes(id);
}

/** Written out digit by digit, in a quarter of the time of a pattern and a decoder: every read looks for an id. */
function uuidBytesOf(id: string): Buffer | undefined {
  if (id.length !== uuidLength) return undefined;
  const bytes = Buffer.allocUnsafe(uuidBytes);
  bytes[0] = uuidMark;
  for (let at = 0, place = 1; place < uuidBytes; at += 2, place++) {
    if (hyphensBefore[at] === true && id.charCodeAt(at++) !== hyphen) return undefined;
    const high = hexDigits[id.charCodeAt(at)] ?? notHex;
    const low = hexDigits[id.charCodeAt(at + 1)] ?? notHex;
    if ((high | low) >= notHex) return undefined;
    bytes[place] = (high << 4) | low;
  }
  return bytes;
}

const uuidLength = 36;
const hyphen = 0x2d;
/** By the place of a hyphen in a UUID. */
const hyphensBefore = Array.from({ length: uuidLength }, (_, at) => '-' === anyUuid[at]);
const notHex = 16;
/** The values of the digits by their character codes, in lower case alone. */
const hexDigits = Array.from({ length: 128 }, (_, code) => {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(code));
  return digit < 0 ? notHex : digit;
});

function textBytes(text: string): Buffer {
  const length = Buffer.byteLength(text);
  const bytes = Buffer.allocUnsafe(1 + length);
  bytes[0] = textMark;
  bytes.write(text, 1);
  return bytes;
}

export interface BytesRange {
  readonly from: Uint8Array;
  /** Exclusive; none where nothing comes after. */
  readonly to: Uint8Array | undefined;
}

/** Where the ids that begin with the text are; `end` is the first text after all that begin with it. */
export function idRanges(prefix: string, end: string | undefined): readonly BytesRange[] {
  const texts = {
    from: textBytes(prefix),
    to: end === undefined ? undefined : textBytes(end),
  };
  const digits = prefix.replaceAll('-', '');
  if (!prefixOfUuid(prefix)) return [texts];
  const from = Buffer.from(`01${digits.padEnd(32, '0')}`, 'hex');
  const last = Buffer.from(`01${digits.padEnd(32, 'f')}`, 'hex');
  return [texts, { from, to: Buffer.concat([last, Buffer.of(0)]) }];
}

function prefixOfUuid(prefix: string): boolean {
  return prefix.length <= 36 && uuidForm.test(prefix + anyUuid.slice(prefix.length));
}

function idOf(bytes: Uint8Array): string {
  const { buffer, byteOffset, byteLength } = bytes;
  const view = Buffer.from(buffer, byteOffset, byteLength);
  if (view[0] !== uuidMark || byteLength !== uuidBytes) {
    const text = view.toString('utf8', 1);
    return isStoredAs(text, view) ? text : `${foreignBytes}${view.toString('hex')}`;
  }
  return formatUuid(view.toString('hex', 1));
}

/**
 * The prefix of an id that the vault did not write, because the vault writes each id in one form only. If another
 * form were read as the same id, a list would find a row that no request could remove. No token id contains a
 * question mark.
 */
const foreignBytes = '?x';
const foreignText = '?t';

const foreignForm = /^\?(?:x((?:[0-9a-f]{2})*)|t(.*))$/s;

/** The id as it was stored, or is to be, so that pages go on after a row that the vault did not write. */
function storedOfId(id: string): Buffer | string {
  const [, hex, text] = (id.startsWith('?') && foreignForm.exec(id)) || [];
  if (hex !== undefined) return Buffer.from(hex, 'hex');
  return text ?? idBytes(id);
}

function isStoredAs(id: string, bytes: Buffer): boolean {
  const stored = storedOfId(id);
  return typeof stored !== 'string' && bytes.equals(stored);
}

const write: Partial<Record<ColumnKind, (value: string) => SqlValue>> = {
  tenant: tenantNumber,
  id: storedOfId,
  digest: (value) => Buffer.from(value, 'base64url'),
};

const read: Partial<Record<ColumnKind, (stored: string | number | Uint8Array) => SqlValue>> = {
  tenant: (stored) =>
    typeof stored === 'number' ? (tenantOfNumber(stored) ?? null) : (stored as string),
  id: (stored) => (stored instanceof Uint8Array ? idOf(stored) : `${foreignText}${stored}`),
  digest: (stored) =>
    stored instanceof Uint8Array ? Buffer.from(stored).toString('base64url') : stored,
};

/** By the names of columns of another form, of which some are also those of columns that hold the text itself. */
const convertedNames = namesOfConverted();

interface ConvertedName {
  readonly kind: ColumnKind;
  readonly isTextElsewhere: boolean;
}

function namesOfConverted(): ReadonlyMap<string, ConvertedName> {
  const all = Object.values(shapes).flatMap(({ columns, kinds }) =>
    columns.map((name, place) => ({ name, kind: kinds[place] ?? 'text' })),
  );
  const texts = new Set(all.flatMap(({ name, kind }) => (kind === 'text' ? [name] : [])));
  const converted = all.filter(({ kind }) => write[kind] !== undefined);
  // In lists of places a token's id is called so.
  return new Map(
    [...converted, { name: 'id', kind: 'id' as const }].map(({ name, kind }) => [
      name,
      { kind, isTextElsewhere: texts.has(name) },
    ]),
  );
}
