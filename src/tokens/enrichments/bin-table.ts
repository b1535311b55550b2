/** An operator's table of BIN ranges: the issuer of a card, its country, and how it is paid. */
import { setImmediate } from 'node:timers/promises';
import { readCsv } from './csv.ts';
import { DamagedFileError } from './damaged-file.ts';

/** A row's details of the cards in its range; `null` if a column is empty or missing. */
export interface BinRange {
  readonly bin_min: string;
  readonly bin_max: string;
  readonly brand: string | null;
  readonly funding: string | null;
  readonly segment: string | null;
  readonly issuer_name: string | null;
  readonly issuer_country: string | null;
}

export interface BinTable {
  /** The ranges that every card beginning with these digits is in, the narrowest first. */
  find(bin: string): readonly BinRange[];
}

/** Digits a BIN of the table may have; issuers divide their eight further. */
const binLengthMin = 6;
const binLengthMax = 11;

const oneOf = (...values: readonly string[]) => ({
  read: (text: string) => values.find((value) => value === text.toLowerCase()),
  form: `must be one of ${values.join(', ')}`,
});

const bin = {
  read: (text: string) =>
    /^[0-9]+$/.test(text) && text.length >= binLengthMin && text.length <= binLengthMax
      ? text
      : undefined,
  form: `must be ${binLengthMin} to ${binLengthMax} digits`,
};

/** By name, as the first line of the file names them, in any order; only `bin_min` must be there. */
const columns: Readonly<Record<keyof BinRange, ReturnType<typeof oneOf>>> = {
  bin_min: bin,
  bin_max: bin,
  brand: oneOf(
    'american-express',
    'diners-club',
    'discover',
    'ebt',
    'elo',
    'hipercard',
    'jcb',
    'mastercard',
    'mir',
    'private-label',
    'proprietary',
    'unionpay',
    'visa',
  ),
  funding: oneOf('credit', 'debit', 'prepaid'),
  segment: oneOf('consumer', 'commercial', 'business', 'government'),
  issuer_name: {
    read: (text) => (text.length <= 200 && !/\p{Cc}/u.test(text) ? text : undefined),
    form: 'must be one line of at most 200 characters',
  },
  issuer_country: {
    read: (text) => (/^[a-z]{2}$/i.test(text) ? text.toUpperCase() : undefined),
    form: 'must be a country code of two letters',
  },
};

interface Interval {
  readonly first: number;
  readonly last: number;
  readonly range: BinRange;
}

/** Records read before other requests are served: half a million take seconds. */
const recordsAtOnce = 1000;

/** @throws DamagedFileError naming the first line that is not a range. */
export async function parseBinTable(bytes: Buffer): Promise<BinTable> {
  const records = readCsv(bytes.toString('utf8'));
  const { value: header } = records.next();
  if (header === undefined) throw new DamagedFileError(1, 'is missing: the file is empty');
  const names = readHeader(header.fields);
  const intervals: Interval[] = [];
  for (const { line, fields } of records) {
    intervals.push(readInterval(names, fields, line));
    if (intervals.length % recordsAtOnce === 0) await setImmediate();
  }
  return indexOf(intervals);
}

function readHeader(fields: readonly string[]): (keyof BinRange)[] {
  const names = fields.map((field) => {
    if (Object.hasOwn(columns, field)) return field as keyof BinRange;
    throw new DamagedFileError(
      1,
      `must name only columns of this list: ${Object.keys(columns).join(', ')}`,
    );
  });
  if (!names.includes('bin_min')) throw new DamagedFileError(1, 'must name the column bin_min');
  if (new Set(names).size < names.length) throw new DamagedFileError(1, 'names a column twice');
  return names;
}

function readInterval(
  names: readonly (keyof BinRange)[],
  fields: readonly string[],
  line: number,
): Interval {
  if (fields.length !== names.length) {
    throw new DamagedFileError(line, `has ${fields.length} fields, not ${names.length}`);
  }
  const row: Partial<Record<keyof BinRange, string>> = {};
  for (const [index, name] of names.entries()) {
    const text = (fields[index] ?? '').trim();
    if (text === '') continue;
    const value = columns[name].read(text);
    if (value === undefined) throw new DamagedFileError(line, `${name} ${columns[name].form}`);
    row[name] = value;
  }
  const { bin_min } = row;
  if (bin_min === undefined) throw new DamagedFileError(line, 'bin_min must not be empty');
  const { brand = null, funding = null, segment = null } = row;
  const { issuer_name = null, issuer_country = null, bin_max = bin_min } = row;
  const first = lowest(bin_min);
  const last = highest(bin_max);
  if (first > last) throw new DamagedFileError(line, 'bin_max must not be below bin_min');
  const range = { bin_min, bin_max, brand, funding, segment, issuer_name, issuer_country };
  return { first, last, range };
}

/** The first and the last number of eleven digits that begin so. */
const lowest = (digits: string) => Number(digits.padEnd(binLengthMax, '0'));
const highest = (digits: string) => Number(digits.padEnd(binLengthMax, '9'));

/** Sorted by the first number; with each, how far any range up to there reaches. */
function indexOf(intervals: readonly Interval[]): BinTable {
  const sorted = intervals.toSorted((a, b) => a.first - b.first);
  const reach: number[] = [];
  for (const { last } of sorted) reach.push(Math.max(last, reach.at(-1) ?? 0));
  return {
    find: (digits) => {
      const [from, to] = [lowest(digits), highest(digits)];
      const found: Interval[] = [];
      for (let index = countUpTo(sorted, from) - 1; (reach[index] ?? 0) >= to; index -= 1) {
        const interval = sorted[index];
        if (interval && interval.last >= to) found.unshift(interval);
      }
      return found.sort((a, b) => a.last - a.first - (b.last - b.first)).map(({ range }) => range);
    },
  };
}

/** How many intervals begin at `number` or before it. */
function countUpTo(sorted: readonly Interval[], number: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle]?.first ?? Number.POSITIVE_INFINITY) <= number) low = middle + 1;
    else high = middle;
  }
  return low;
}
