/** Imports that forgive: exports of other vaults, a look before anything is created, and nothing created twice. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { engineOf, onBothEngines } from '../support/engines.ts';
import { environmentOf, type Finished, runCommand, runWithInput } from '../support/process.ts';
import { root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { managementKey, startVault } from '../support/vault.ts';

const examples = join(root, 'docs', 'examples', 'mappings');
type Engine = ReturnType<typeof engineOf>;

async function start(t: TestContext, engine: Engine = engineOf('sqlite')) {
  const vault = await startVault(t, engine);
  const directory = temporaryDirectory(t);
  const key = await vault.application();
  const write = (name: string, content: string | object) => {
    const file = join(directory, name);
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
    return file;
  };
  const run = (words: readonly string[], holder = key): Promise<Finished> =>
    runCommand(['import', ...words, '--url', vault.url, '--key-env', 'KEY'], { KEY: holder });
  const total = async (): Promise<number> =>
    (await vault.send('GET', '/tokens?size=0', { key })).body.pagination.total_items;
  const get = async (id: string) => (await vault.send('GET', `/tokens/${id}`, { key })).body;
  return { vault, key, directory, write, run, total, get };
}

/** The last line of standard error, with `--json`. */
const countsIn = ({ stderr }: Finished) => JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '');

const card = {
  type: 'card',
  data: { number: 'pan', expiration_month: 'month', expiration_year: 'year' },
};

onBothEngines('an import with a mapping', (engine) => {
  test('every example of docs/examples/mappings goes in, with the values that it has', async (t) => {
    const { directory, run, total, get, vault, key } = await start(t, engine);
    const names = readdirSync(examples);
    const mappings = names.filter((name) => name.endsWith('.json') && !name.includes('.export.'));
    assert.ok(mappings.length >= 5);
    let expected = 0;
    for (const mapping of mappings) {
      const base = mapping.replace(/\.json$/, '');
      const example = names.find(
        (name) => name === `${base}.csv` || name === `${base}.export.json`,
      );
      assert.ok(example, `${mapping} has an example`);
      const file = join(directory, example);
      copyFileSync(join(examples, example), file);
      const words = [file, '--mapping', join(examples, mapping), '--json'];
      const dry = await run([...words, '--dry-run']);
      assert.equal(dry.code, 0, dry.stderr);
      const { created, refused, doubled } = countsIn(dry);
      assert.deepEqual([refused, doubled], [0, 0], mapping);
      assert.equal(await total(), expected, 'a dry run creates nothing');
      const imported = await run(words);
      assert.equal(imported.code, 0, imported.stderr);
      assert.deepEqual(countsIn(imported), { created, deduplicated: 0, repeated: 0, failed: 0 });
      expected += created;
      assert.equal(await total(), expected);
    }
    assert.deepEqual((await get('tok_4f1c90')).data, {
      number: '4242424242424242',
      expiration_month: 12,
      expiration_year: 2030,
    });
    assert.deepEqual((await get('tok_d03e5a')).metadata, { customer: 'C-1003; former' });
    assert.equal((await get('cd34e5')).data.expiration_year, 2032);
    assert.deepEqual((await get('card_B2')).metadata, {
      customer: 'cus_B2',
      name: 'Hopper, Grace',
      email: 'grace@example.com',
    });
    assert.equal((await get('tok_sandbox_2')).data, '5555555555554444');
    const people = await vault.send('GET', '/tokens?metadata.customer=C-3001', { key });
    assert.deepEqual(people.body.data[0].data, { first: 'Ada', last: 'Lovelace' });
    assert.deepEqual(people.body.data[0].containers, ['/people/']);
  });
});

test('the preview shows what the mapping makes, without values, and asks no vault', async (t) => {
  const { write } = await start(t);
  const file = write('in.csv', 'alias,pan,month,year\na-1,4242 4242 4242 4242,12,30\nbroken\n');
  const mapping = write('mapping.json', { ...card, id: 'alias' });
  const { code, stdout } = await runCommand(
    ['import', file, '--mapping', mapping, '--preview'],
    {},
  );
  assert.equal(code, 1);
  const [first = '', second] = stdout.split('\n');
  assert.match(first, /^line 2: /);
  assert.deepEqual(JSON.parse(first.replace('line 2: ', '')), {
    id: 'a-1',
    type: 'card',
    data: { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2030 },
  });
  assert.equal(second, 'line 3 has 1 fields, and the first line 4');
});

test('broken lines have their numbers and reasons without values, and the rest goes in', async (t) => {
  const { write, run, total } = await start(t);
  const mapping = write('mapping.json', { ...card, id: 'alias' });
  const wrong = '4242424242424241';
  const file = write(
    'in.csv',
    [
      '\uFEFFalias,pan,month,year',
      'a-1,4242424242424242,12,2030',
      'a-2,4242424242424242',
      '',
      `"a-\n3",${wrong},1,2031`,
      'a-4,5555555555554444,5,2031',
      '',
    ].join('\r\n'),
  );
  const result = await run([file, '--mapping', mapping]);
  assert.equal(result.code, 1);
  assert.match(result.stderr, /^line 3 has 2 fields, and the first line 4$/m);
  assert.match(result.stderr, /^line 5 \(400\): .*data\.number /m);
  assert.ok(!result.stderr.includes(wrong));
  assert.equal(await total(), 2);
  const reasons = readFileSync(`${file}.errors.reasons`, 'utf8').trimEnd().split('\n');
  assert.deepEqual(reasons.map((line) => JSON.parse(line).line).sort(), [3, 5]);
  assert.ok(!reasons.join().includes(wrong));

  const failed = readFileSync(`${file}.errors`, 'utf8');
  assert.ok(
    failed.startsWith('\uFEFFalias,pan,month,year\n') ||
      failed.startsWith('alias,pan,month,year\n'),
  );
  const corrected = write(
    'corrected.csv',
    failed
      .replace('a-2,4242424242424242', 'a-2,4242424242424242,1,2031')
      .replace(wrong, '378282246310005')
      .replace('"a-\n3"', 'a-3'),
  );
  assert.equal((await run([corrected, '--mapping', mapping])).code, 0);
  assert.equal(await total(), 4);
});

test('a quote that is never closed ends the file with its line, and what came before is imported', async (t) => {
  const { write, run, total } = await start(t);
  const mapping = write('mapping.json', { type: 'token', id: 'id', data: 'name' });
  const file = write('in.csv', 'id,name\none,Ada\ntwo,"Grace\nthree,Mary\n');
  const { code, stderr } = await run([file, '--mapping', mapping]);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^line 3 begins a field with a quote that is never closed; nothing after it was read$/m,
  );
  assert.equal(await total(), 1);
});

test('a mapping, or a file, that cannot be used is refused by name before anything is sent', async (t) => {
  const { write, run, total, directory } = await start(t);
  const file = write('in.csv', 'alias,pan,month,year\na,4242424242424242,1,2030\n');
  const right = write('right.json', { ...card, id: 'alias' });
  const latin = join(directory, 'latin.csv');
  writeFileSync(latin, Buffer.from('alias,pan,month,year\na\xE9,1,1,2030\n', 'latin1'));
  const cases: readonly (readonly [string, string, RegExp])[] = [
    [file, write('a.json', '{'), /the mapping \S+ is not JSON/],
    [file, write('b.json', { data: 'pan' }), /is wrong: type is required/],
    [file, write('c.json', { ...card, idd: 'alias' }), /idd is not a known attribute/],
    [
      file,
      write('d.json', { ...card, id: 'allias' }),
      /does not have: allias \(did you mean alias\?\)/,
    ],
    [write('empty.csv', ''), right, /the file is empty/],
    [write('twice.csv', 'alias,pan,pan\n'), right, /names the column pan twice/],
    [write('in.json', '{'), right, /the file is not JSON/],
    [write('no-list.json', '{}'), right, /the file is not a list of records/],
    [latin, right, /the file is not UTF-8/],
  ];
  for (const [given, mapping, problem] of cases) {
    const { code, stderr } = await run([given, '--mapping', mapping]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, problem);
  }
  assert.equal(await total(), 0);
});

test('--dry-run says which lines would be created, refused and doubled, by line and without values', async (t) => {
  const { write, run, total, vault, key } = await start(t);
  await vault.send('POST', '/tokens', { key, body: { id: 'there', type: 'token', data: 'x' } });
  const wrong = '4242424242424241';
  const lines = [
    { id: 'new', type: 'token', data: 'a' },
    { id: 'there', type: 'token', data: 'b' },
    { type: 'token', data: 'same' },
    { type: 'token', data: 'same' },
    { id: 'new', type: 'token', data: 'c' },
    { type: 'card', data: { number: wrong, expiration_month: 1, expiration_year: 2030 } },
    { type: 'token', data: 'd', expires: 'never' },
  ];
  const text = [...lines.map((line) => JSON.stringify(line)), 'no JSON'].join('\n');
  const result = await run([write('in.ndjson', text), '--dry-run', '--json']);
  assert.equal(result.code, 1);
  assert.deepEqual(countsIn(result), { created: 2, refused: 4, doubled: 2 });
  assert.match(result.stderr, /^line 2 would be doubled: the vault has a token with its id$/m);
  assert.match(
    result.stderr,
    /^line 4 would be doubled: line 3 is the same, and neither has an id$/m,
  );
  assert.match(result.stderr, /^line 5 would be refused: line 1 has the same id$/m);
  assert.match(result.stderr, /^line 6 would be refused: data\.number /m);
  assert.match(result.stderr, /^line 7 would be refused: expires is not a known attribute$/m);
  assert.match(result.stderr, /^line 8 would be refused: it is not JSON$/m);
  assert.ok(!result.stderr.includes(wrong));
  assert.equal(await total(), 1);
});

test('--dry-run refuses what the key may not create, and what the tenant has no room for', async (t) => {
  const { write, run, vault } = await start(t);
  const rule = {
    priority: 1,
    container: '/people/',
    permissions: ['token:create', 'token:read'],
    transform: 'mask',
  };
  const limited = await vault.application({ rules: [rule] });
  const token = { type: 'token', data: 'x'.repeat(40) };
  const lines = [token, { ...token, containers: ['/people/'] }, { ...token, id: 'own' }];
  const file = write('in.ndjson', lines.map((line) => JSON.stringify(line)).join('\n'));
  const result = await run([file, '--dry-run', '--json'], limited);
  assert.equal(result.code, 1);
  assert.deepEqual(countsIn(result), { created: 1, refused: 2, doubled: 0 });
  assert.match(
    result.stderr,
    /^line 1 would be refused: the key has no token:create in \/general\/high\/$/m,
  );
  assert.match(result.stderr, /^Quotas were not compared: that needs --management-key-file/m);
  // The import says the same.
  const imported = await run([file, '--json'], limited);
  const { created, failed } = countsIn(imported);
  assert.deepEqual([created, failed], [1, 2]);

  const place = environmentOf(vault.place);
  const quota = ['tenant', 'quota', '--tenant', 'default', '--set', 'token_storage=0'];
  assert.equal((await runCommand(quota, place)).code, 0);
  const manager = write('manager.key', managementKey);
  chmodSync(manager, 0o644);
  const open = await run([file, '--dry-run', '--management-key-file', manager]);
  assert.deepEqual([open.code, /others may read .*chmod 600/.test(open.stderr)], [2, true]);
  chmodSync(manager, 0o600);
  const full = await run([file, '--dry-run', '--management-key-file', manager]);
  assert.equal(full.code, 1, full.stderr);
  assert.match(full.stderr, /room for \d+ bytes more \(quota token_storage\)/);
  assert.doesNotMatch(full.stderr, /not compared/);
});

test('the same file without ids is refused with exit code 1, unless --again or --resume is given', async (t) => {
  const { write, run, total } = await start(t);
  const lines = ['a', 'b', 'b'].map((data) => JSON.stringify({ type: 'token', data }));
  const file = write('in.ndjson', `${lines.join('\n')}\n`);
  assert.equal((await run([file])).code, 0);
  assert.equal(await total(), 3);
  const again = await run([file]);
  assert.equal(again.code, 1);
  assert.match(
    again.stderr,
    /3 of 3 lines without an id were imported before, on 20\S+\. Nothing was imported now\. Use --resume .* or --again/,
  );
  assert.equal(await total(), 3);
  const dry = await run([file, '--dry-run', '--json']);
  assert.deepEqual(countsIn(dry), { created: 0, refused: 0, doubled: 3 });

  appendFileSync(
    file,
    `${JSON.stringify({ type: 'token', data: 'b' })}\n${JSON.stringify({ type: 'token', data: 'c' })}\n`,
  );
  const resumed = await run([file, '--resume', '--json']);
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.deepEqual(countsIn(resumed), { created: 2, deduplicated: 0, repeated: 3, failed: 0 });
  assert.equal(await total(), 5);

  assert.equal((await run([file, '--again'])).code, 0);
  assert.equal(await total(), 10);
});

test('lines with ids, or that are deduplicated, may be sent as often as anyone likes', async (t) => {
  const { write, run, total } = await start(t);
  const lines = [
    { id: 'one', type: 'token', data: 'a' },
    { type: 'token', data: 'b', deduplicate_token: true },
  ];
  const file = write('in.ndjson', lines.map((line) => JSON.stringify(line)).join('\n'));
  for (let count = 0; count < 2; count += 1) assert.equal((await run([file])).code, 0);
  assert.equal(await total(), 2);
});

test('the digests of what was imported tell nothing, and another key gets a warning', async (t) => {
  const { write, run, vault } = await start(t);
  const line = JSON.stringify({ type: 'card_number', data: '4242424242424242' });
  const file = write('in.ndjson', line);
  assert.equal((await run([file])).code, 0);
  const ledger = readFileSync(`${file}.imported`, 'utf8');
  assert.equal(statSync(`${file}.imported`).mode & 0o777, 0o600);
  for (const text of [line, `strongroom import\n${line}`, '4242424242424242']) {
    const digest = createHash('sha256').update(text).digest('base64url');
    assert.ok(!ledger.includes(digest.slice(0, 16)));
  }
  assert.ok(!ledger.includes('4242'));
  const other = await run([file], await vault.application());
  assert.equal(other.code, 0);
  assert.match(other.stderr, /was imported to this address with another key, on 20/);
});

test('an import that is cut off resumes where it was: what was acknowledged is not imported again', async (t) => {
  const { write, run, total } = await start(t);
  const lines = Array.from({ length: 50 }, (_, at) => JSON.stringify({ type: 'token', data: at }));
  const file = write('in.ndjson', `${lines.slice(0, 20).join('\n')}\n`);
  assert.equal((await run([file])).code, 0);
  writeFileSync(file, `${lines.join('\n')}\n`);
  const refused = await run([file]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /20 of 50 lines without an id were imported before/);
  assert.equal((await run([file, '--resume'])).code, 0);
  assert.equal(await total(), 50);
  assert.equal((await run([file, '--from', '51'])).code, 0, 'lines before --from are not counted');
});

test('standard input takes a mapping as well', async (t) => {
  const { write, vault, key, total } = await start(t);
  const mapping = write('mapping.json', { type: 'token', data: 'name', delimiter: ';' });
  const words = ['import', '-', '--mapping', mapping, '--url', vault.url, '--key-env', 'KEY'];
  const { code, stderr } = await runWithInput(words, { KEY: key }, 'id;name\n1;Ada\n2;Grace\n');
  assert.equal(code, 0, stderr);
  assert.equal(await total(), 2);
});
