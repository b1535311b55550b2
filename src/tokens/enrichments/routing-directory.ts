/** The FedACH participant directory as the Federal Reserve publishes it: fixed width, one bank a line. */
import { abaAssignable } from '../../base/checks.ts';
import { DamagedFileError } from './damaged-file.ts';

/** The routing numbers that receive ACH transfers, those that were replaced by another included. */
export type RoutingDirectory = ReadonlySet<string>;

export const recordLength = 155;

/** The fields that distinguish a whole record from a damaged one, at their published columns, from 1. */
const fields: readonly {
  readonly from: number;
  readonly to: number;
  readonly form: RegExp;
  readonly name: string;
}[] = [
  { from: 10, to: 10, form: /^[OB]$/, name: 'office code' },
  { from: 11, to: 19, form: /^[0-9]{9}$/, name: 'servicing FRB number' },
  { from: 20, to: 20, form: /^[012]$/, name: 'record type code' },
  { from: 21, to: 26, form: /^[0-9]{6}$/, name: 'change date' },
  { from: 27, to: 35, form: /^[0-9]{9}$/, name: 'new routing number' },
  { from: 128, to: 129, form: /^[A-Z]{2}$/, name: 'state code' },
  { from: 149, to: 149, form: /^[0-9]$/, name: 'institution status code' },
  { from: 150, to: 150, form: /^[0-9]$/, name: 'data view code' },
];

/**
 * Reads all of it or nothing: a bank that is missing because half a file was copied would look like
 * one that does not exist.
 *
 * @throws DamagedFileError naming the first line that is not a record.
 */
export function parseRoutingDirectory(bytes: Buffer): RoutingDirectory {
  const lines = bytes.toString('latin1').split('\n');
  if (lines.at(-1) === '') lines.pop();
  if (lines.length === 0) throw new DamagedFileError(1, 'is missing: the file is empty');
  return new Set(lines.map((line, index) => routingNumberOf(line, index + 1)));
}

function routingNumberOf(line: string, number: number): string {
  const record = line.endsWith('\r') ? line.slice(0, -1) : line;
  if (record.length !== recordLength) {
    throw new DamagedFileError(number, `has ${record.length} characters, not ${recordLength}`);
  }
  const routingNumber = record.slice(0, 9);
  if (!abaAssignable(routingNumber)) {
    throw new DamagedFileError(number, 'does not begin with a routing number');
  }
  for (const { from, to, form, name } of fields) {
    if (!form.test(record.slice(from - 1, to))) {
      throw new DamagedFileError(number, `has no valid ${name} at characters ${from} to ${to}`);
    }
  }
  return routingNumber;
}
