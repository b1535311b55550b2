/** The operator's BIN table: its columns, its ranges, and what is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseBinTable } from '../../src/tokens/enrichments/bin-table.ts';

const table = (...lines: readonly string[]) => parseBinTable(Buffer.from(lines.join('\n')));
const header = 'bin_min,bin_max,brand,funding,segment,issuer_name,issuer_country';
const issuersOf = (lines: readonly string[], bin: string) =>
  table('bin_min,bin_max,issuer_name', ...lines).then((made) =>
    made.find(bin).map(({ issuer_name }) => issuer_name),
  );

test('a row is read in any order of columns, with names and codes in one form', async () => {
  const found = (
    await table(
      'issuer_country,brand,bin_min,issuer_name,funding,segment',
      'us,VISA,424242,"Example Bank, N.A.",Credit,CONSUMER',
    )
  ).find('424242');
  assert.deepEqual(found, [
    {
      bin_min: '424242',
      bin_max: '424242',
      brand: 'visa',
      funding: 'credit',
      segment: 'consumer',
      issuer_name: 'Example Bank, N.A.',
      issuer_country: 'US',
    },
  ]);
});

test('what a row leaves empty and what has no column is null', async () => {
  const nothing = { brand: null, funding: null, segment: null };
  const issuer = { issuer_name: null, issuer_country: null };
  const range = { bin_min: '424242', bin_max: '424242', ...nothing, ...issuer };
  assert.deepEqual((await table('bin_min', '424242')).find('424242'), [range]);
  assert.deepEqual((await table(header, '424242,,,,,,')).find('424242'), [range]);
});

test('a range reaches from its first digits to its last, of whatever length', async () => {
  const lines = ['42424200,42424299,a', '424243,424245,b', '42424600000,42424600499,c'];
  for (const [bin, issuer] of [
    ['42424200', 'a'],
    ['42424299', 'a'],
    ['424242', 'a'],
    ['424243', 'b'],
    ['42424399', 'b'],
    ['42424599', 'b'],
    ['424245', 'b'],
  ] as const) {
    assert.deepEqual(await issuersOf(lines, bin), [issuer], bin);
  }
  for (const bin of ['424241', '42424199', '424246', '42424600', '424247']) {
    assert.deepEqual(await issuersOf(lines, bin), [], bin);
  }
});

test('of ranges within one another the narrowest comes first, equal ones as in the file', async () => {
  const lines = ['4,', '400000,499999,wide', '42424242,,narrow', '424242,,second', '424242,,third'];
  await assert.rejects(() => issuersOf(lines, '424242'), /line 2/);
  const good = lines.slice(1);
  assert.deepEqual(await issuersOf(good, '42424242'), ['narrow', 'second', 'third', 'wide']);
  assert.deepEqual(await issuersOf(good, '424242'), ['second', 'third', 'wide']);
  assert.deepEqual(await issuersOf(good, '499999'), ['wide']);
});

test('a damaged table is refused by the number of its line, and quotes nothing of it', async () => {
  const good = '424242,424243,visa,debit,business,Example Bank,US';
  const damaged: Readonly<Record<string, string>> = {
    '424242': 'has 1 fields, not 7',
    '': 'has 1 fields, not 7',
    ',424242,,,,,': 'bin_min must not be empty',
    '42424,,,,,,': 'bin_min must be 6 to 11 digits',
    '4242x2,,,,,,': 'bin_min must be 6 to 11 digits',
    '424242,424242424242,,,,,': 'bin_max must be 6 to 11 digits',
    '424243,424242,,,,,': 'bin_max must not be below bin_min',
    '424242,,visum,,,,': 'brand must be one of american-express',
    '424242,,,charge,,,': 'funding must be one of credit, debit, prepaid',
    '424242,,,,retail,,': 'segment must be one of consumer',
    '424242,,,,,,USA': 'issuer_country must be a country code of two letters',
    '424242,,,,,"a\nb",': 'issuer_name must be one line of at most 200 characters',
    '424242,,,,,"a': 'has a quote where RFC 4180 has none',
  };
  for (const [line, problem] of Object.entries(damaged)) {
    const refusal = { name: 'DamagedFileError', line: 3 };
    await assert.rejects(() => table(header, good, line, good), refusal);
    await assert.rejects(() => table(header, good, line, good), new RegExp(`: line 3 ${problem}`));
  }
});

test('the first line names known columns, each once, and bin_min among them', async () => {
  for (const wrong of [
    '',
    'bin_max',
    'bin_min,bin',
    'bin_min,bin_min',
    'BIN_MIN',
    '424242,,visa',
  ]) {
    await assert.rejects(() => table(wrong), { name: 'DamagedFileError', line: 1 }, wrong);
  }
});
