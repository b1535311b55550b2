/** The FedACH directory: records are put together here from the published layout, field by field. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DamagedFileError } from '../../src/tokens/enrichments/damaged-file.ts';
import {
  parseRoutingDirectory,
  recordLength,
} from '../../src/tokens/enrichments/routing-directory.ts';

/** Name, length and an example of each field, as the Federal Reserve lists them. */
const layout = {
  routing_number: [9, '021000021'],
  office_code: [1, 'O'],
  servicing_frb_number: [9, '021001208'],
  record_type_code: [1, '1'],
  change_date: [6, '072505'],
  new_routing_number: [9, '000000000'],
  customer_name: [36, 'FIRST BANK OF EXAMPLES'],
  address: [36, '1 MAIN STREET'],
  city: [20, 'TAMPA'],
  state_code: [2, 'FL'],
  zipcode: [5, '33610'],
  zipcode_extension: [4, '0000'],
  telephone_area_code: [3, '813'],
  telephone_prefix: [3, '555'],
  telephone_suffix: [4, '0100'],
  institution_status_code: [1, '1'],
  data_view_code: [1, '1'],
  filler: [5, ''],
} as const;

type Fields = Partial<Record<keyof typeof layout, string>>;

function record(fields: Fields = {}): string {
  return Object.entries(layout)
    .map(([name, [length, example]]) =>
      (fields[name as keyof Fields] ?? example).padEnd(length, ' '),
    )
    .join('');
}

const parse = (text: string) => parseRoutingDirectory(Buffer.from(text, 'latin1'));

const others = { routing_number: '011000028', office_code: 'B', state_code: 'MA' };

test('the published layout is read: its routing numbers, whatever else a record says', () => {
  assert.equal(record().length, recordLength);
  const lines = [
    record(),
    record(others),
    record({ routing_number: '011001962', record_type_code: '2', new_routing_number: '322203950' }),
    record({ routing_number: '011000015', record_type_code: '0', customer_name: 'BANK Ñ & CO' }),
  ];
  const directory = parse(lines.join('\n'));
  assert.deepEqual([...directory], ['021000021', '011000028', '011001962', '011000015']);
  assert.deepEqual(parse(`${lines.join('\r\n')}\r\n`), directory);
});

test('a damaged file is refused by the number of its line, and quotes nothing of it', () => {
  const damaged: Readonly<Record<string, string>> = {
    'has 154 characters, not 155': record().slice(1),
    'has 156 characters, not 155': `${record()} `,
    'has 0 characters, not 155': '',
    'has 80 characters, not 155': record().slice(0, 80),
    'does not begin with a routing number': record({ routing_number: '021000022' }),
    'has no valid office code at characters 10 to 10': record({ office_code: 'X' }),
    'has no valid servicing FRB number at characters 11 to 19': record({
      servicing_frb_number: '02100120X',
    }),
    'has no valid record type code at characters 20 to 20': record({ record_type_code: '3' }),
    'has no valid change date at characters 21 to 26': record({ change_date: 'DEC 04' }),
    'has no valid new routing number at characters 27 to 35': record({ new_routing_number: '' }),
    'has no valid state code at characters 128 to 129': record({ state_code: 'f1' }),
    'has no valid institution status code at characters 149 to 149': record({
      institution_status_code: ' ',
    }),
    'has no valid data view code at characters 150 to 150': record({ data_view_code: ' ' }),
  };
  for (const [problem, line] of Object.entries(damaged)) {
    assert.throws(
      () => parse([record(), record(others), line, record()].join('\n')),
      (error) => {
        assert.ok(error instanceof DamagedFileError);
        assert.equal(error.line, 3);
        assert.equal(error.message, `line 3 ${problem}`);
        return true;
      },
    );
  }
});

test('a field moved by one column is noticed, and so is an empty file', () => {
  const moved = `${record().slice(0, 35)} ${record().slice(35, -1)}`;
  assert.equal(moved.length, recordLength);
  assert.throws(() => parse(moved), /^DamagedFileError: line 1 has no valid state code/);
  assert.throws(() => parse(''), /^DamagedFileError: line 1 is missing/);
  assert.throws(() => parse('\n'), /^DamagedFileError: line 1 is missing|line 1 has 0/);
});
