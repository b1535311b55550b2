/** `strongroom import` and `strongroom export`: what goes in comes out, and what fails is kept. */
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Engine, engineOf, onBothEngines } from '../support/engines.ts';
import { linesOfAnswer } from '../support/lines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { startVault, type TestVault } from '../support/vault.ts';

const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };

async function start(t: Parameters<typeof startVault>[0], engine: Engine) {
  const vault = await startVault(t, engine);
  const directory = temporaryDirectory(t);
  const key = await vault.application();
  const file = (name: string) => join(directory, name);
  const run = (words: readonly string[], holder = key) =>
    runCommand([...words, '--url', vault.url, '--key-env', 'KEY'], { KEY: holder });
  return { vault, file, run, key };
}

function writeLines(file: string, lines: readonly (object | string)[]): void {
  const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
  writeFileSync(file, texts.map((text) => `${text}\n`).join(''));
}

const read = (file: string) => linesOfAnswer({ text: readFileSync(file, 'utf8') });

const total = async (vault: TestVault, key: string): Promise<number> =>
  (await vault.send('GET', '/tokens?size=0', { key })).body.pagination.total_items;

onBothEngines('strongroom import and export', (engine) => {
  test('a file goes in, comes out, and goes into another vault as it was', async (t) => {
    const one = await start(t, engine);
    const other = await start(t, engine);
    const tokens = [
      { id: 'a-card', type: 'card', data: card, metadata: { owner: 'Ada' } },
      { id: 'a-name', type: 'token', data: 'Ada Lovelace', containers: ['/people/'] },
      { id: 'a-mask', type: 'token', data: 'shown', mask: '{{ data | reveal_last: 2 }}' },
      { id: 'an-index', type: 'token', data: 'found', search_indexes: ['{{ data }}'] },
    ];
    writeLines(one.file('in'), [...tokens, '', '  ']);
    const imported = await one.run(['import', one.file('in')]);
    assert.deepEqual([imported.code, imported.stdout], [0, ''], imported.stderr);
    assert.match(
      imported.stderr,
      /^4 tokens created, 0 values deduplicated, 0 lines already imported, 0 failed\.$/m,
    );

    const exported = await one.run(['export', one.file('out')]);
    assert.equal(exported.code, 0, exported.stderr);
    assert.equal(statSync(one.file('out')).mode & 0o777, 0o600);
    const lines = read(one.file('out'));
    assert.deepEqual(lines.at(-1), { exported: tokens.length });

    const again = await other.run(['import', one.file('out'), '--json']);
    assert.equal(again.code, 0, again.stderr);
    assert.deepEqual(JSON.parse(again.stderr.trimEnd().split('\n').at(-1) ?? ''), {
      created: 4,
      deduplicated: 0,
      repeated: 0,
      failed: 0,
    });
    for (const { id } of tokens) {
      const [was, is] = await Promise.all(
        [one, other].map(({ vault, key }) => vault.send('GET', `/tokens/${id}`, { key })),
      );
      assert.deepEqual(lasting(is?.body), lasting(was?.body));
    }
  });

  test('files that were there before become their owner’s alone', async (t) => {
    const { vault, file, run } = await start(t, engine);
    const written = ['out', 'in.errors', 'in.errors.reasons', 'log'];
    for (const name of written) {
      writeFileSync(file(name), 'left behind, and longer than what comes');
      chmodSync(file(name), 0o644);
    }
    writeLines(file('in'), [{ id: 'one', type: 'token', data: 1 }, 'no JSON']);
    assert.equal((await run(['import', file('in')])).code, 1);
    assert.equal((await run(['export', file('out')])).code, 0);
    const out = ['logs', 'export', '--out', file('log')];
    assert.equal((await runCommand(out, environmentOf(vault.place))).code, 0);
    for (const name of written) {
      assert.equal(statSync(file(name)).mode & 0o777, 0o600, name);
      assert.doesNotMatch(readFileSync(file(name), 'utf8'), /left behind/);
    }
  });

  test('lines that fail are written to files with their reasons, and the rest is imported once', async (t) => {
    const { vault, file, run, key } = await start(t, engine);
    const secret = '4242424242424241';
    const wrong = { id: 'wrong', type: 'card', data: { number: secret } };
    writeLines(file('in'), [{ id: 'one', type: 'token', data: 1 }, wrong, 'no JSON', '']);
    const first = await run(['import', file('in')]);
    assert.equal(first.code, 1);
    assert.match(first.stderr, /1 tokens created, .* 2 failed\./);
    assert.ok(!first.stderr.includes(secret));
    assert.equal(readFileSync(file('in.errors'), 'utf8'), `${JSON.stringify(wrong)}\nno JSON\n`);
    assert.equal(statSync(file('in.errors')).mode & 0o777, 0o600);
    const reasons = read(file('in.errors.reasons'));
    assert.deepEqual(
      reasons.map(({ line, status }) => [line, status]),
      [
        [2, 400],
        [3, 400],
      ],
    );
    assert.ok(!JSON.stringify(reasons).includes(secret));

    writeLines(file('in.errors'), [{ ...wrong, data: card }]);
    assert.equal((await run(['import', file('in.errors')])).code, 0);
    const again = await run(['import', file('in'), '--from', '1', '--errors', file('other')]);
    assert.match(again.stderr, /0 tokens created, .* 1 lines already imported, 2 failed\./);
    assert.equal(await total(vault, key), 2);
  });

  test('begins at the requested line', async (t) => {
    const { vault, file, run, key } = await start(t, engine);
    writeLines(
      file('in'),
      Array.from({ length: 10 }, (_, at) => ({ type: 'token', data: at })),
    );
    assert.equal((await run(['import', file('in'), '--from', '8'])).code, 0);
    assert.equal(await total(vault, key), 3);
  });

  test('without a key, or with one that may not do it, the reason is printed and nothing is done', async (t) => {
    const { vault, file, run, key } = await start(t, engine);
    writeLines(file('in'), [{ type: 'token', data: 1 }]);
    const reader = await vault.application({ permissions: ['token:read'] });
    const refused = await run(['import', file('in')], reader);
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /the vault returned 403\. The key lacks the permission token:create/,
    );
    const creator = await vault.application({ permissions: ['token:create'] });
    const unread = await run(['export', file('out')], creator);
    assert.equal(unread.code, 1);
    assert.match(unread.stderr, /the vault returned 403/);
    const none = await runCommand(['import', file('in'), '--url', vault.url], {});
    assert.equal(none.code, 2);
    assert.match(none.stderr, /there is no key: set the variable STRONGROOM_KEY/);
    assert.equal(await total(vault, key), 0);
  });
});

test('a use that makes no sense is refused with what would', async (t) => {
  const { file, run } = await start(t, engineOf('sqlite'));
  for (const [words, message] of [
    [['import'], /the FILE is missing/],
    [['import', 'a', 'b'], /one FILE at a time/],
    [['import', file('in'), '--from', '0'], /--from must be the number of a line/],
  ] as const) {
    const { code, stderr } = await run(words);
    assert.equal(code, 2);
    assert.match(stderr, message);
  }
  const missing = await run(['import', file('nowhere')]);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /The file .*nowhere does not exist\./);
});

/** What does not depend on the vault that holds it. */
function lasting(token: Readonly<Record<string, unknown>>): object {
  const { tenant_id: _1, created_by: _2, created_at: _3, fingerprint, ...rest } = token;
  return { ...rest, isFingerprinted: fingerprint !== undefined };
}
