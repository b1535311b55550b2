/** GET /fields/v1/…: what pages with card fields run is small, and each byte of it is in the list of digests. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { constants, createHash, verify } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { buildPackage } from '../../scripts/build-client.ts';
import { createBrowserFiles } from '../../src/browser/files.ts';
import { engineOf } from '../support/engines.ts';
import { committedPaths, root } from '../support/source.ts';
import { type Lender, temporaryDirectory } from '../support/temporary.ts';
import { startVault, type TestVault } from '../support/vault.ts';

const loaderBytesMax = 6 * 1024;
const frameBytesMax = 20 * 1024;

test('the loader has at most 6 kB compressed, and all of a frame 20 kB', async () => {
  const files = await createBrowserFiles()();
  const size = (name: string) => brotliCompressSync(files.named(name).body.bytes).length;
  assert.ok(size('fields/loader.js') <= loaderBytesMax);
  assert.ok(size('fields/frame.js') + size('fields/frame.css') <= frameBytesMax);
});

test('each code of an error of fields is in the guide', () => {
  const guide = readFileSync(join(root, 'docs', 'fields-reference.md'), 'utf8');
  const sources = committedPaths().filter((path) => /^packages\/fields\/src\/.*\.ts$/.test(path));
  const codes = sources.flatMap((path) =>
    [
      ...readFileSync(join(root, path), 'utf8').matchAll(
        /(?:\bcode: |because\(\s*)'([a-z]+(?:_[a-z]+)*)'/g,
      ),
    ].map(([, code = '']) => code),
  );
  assert.ok(new Set(codes).size > 12);
  assert.deepEqual(
    [...new Set(codes)].filter((code) => !guide.includes(`\`${code}\``)),
    [],
  );
});

test('the package for npm has one module with declarations, which can be imported without a document', async (t) => {
  const directory = temporaryDirectory(t);
  await buildPackage('fields', directory);
  assert.match(readFileSync(join(directory, 'fields.d.ts'), 'utf8'), /export declare class Fields/);
  const { Fields } = await import(pathToFileURL(join(directory, 'fields.js')).href);
  const secret = `key_test_pvt_${'0'.repeat(49)}`;
  assert.throws(() => new Fields({ key: secret, vault: 'https://vault.example.com' }), {
    code: 'key_secret',
  });
});

test('200: the list has the digest of the loader and of all that a frame loads', async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const { status, body } = await vault.send('GET', '/fields/v1/digests.json');
  assert.equal(status, 200);
  const listed = new Map<string, { path: string; integrity: string }>(
    body.files.map((file: { name: string }) => [file.name, file]),
  );
  assert.deepEqual([...listed.keys()], ['fields/frame.css', 'fields/frame.js', 'fields/loader.js']);
  const loader = await vault.send('GET', '/fields/v1/loader.js');
  const digest = createHash('sha384').update(loader.text).digest('base64');
  assert.equal(listed.get('fields/loader.js')?.integrity, `sha384-${digest}`);
  assert.equal(loader.headers.get('cross-origin-resource-policy'), 'cross-origin');
  assert.equal(loader.headers.get('cache-control'), 'public, max-age=300');
  const key = await vault.application({
    name: 'page',
    type: 'public',
    permissions: ['token:create'],
    origins: ['https://shop.example.com'],
  });
  const frame = await vault.send('GET', `/fields/v1/frame/${key}`);
  const loaded = [...frame.text.matchAll(/(?:src|href)="([^"]+)" integrity="([^"]+)"/g)];
  assert.equal(loaded.length, 2);
  for (const [, path, integrity] of loaded) {
    assert.ok(
      [...listed.values()].some((file) => file.path === path && file.integrity === integrity),
    );
  }
});

const padding = constants.RSA_PKCS1_PSS_PADDING;

test('200: the vault signs the list, and nothing that is signed can stand for it', async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const { text, body, headers } = await vault.send('GET', '/fields/v1/digests.json');
  const key = (await vault.send('GET', '/keys/webhooks.v1.key')).text;
  const signature = Buffer.from(headers.get('svc-signature') ?? '', 'base64');
  assert.equal(headers.get('svc-signature-version'), 'v1');
  assert.ok(verify('sha256', Buffer.from(text), { key, padding }, signature));
  const other = text.replace('sha384-', 'sha384+');
  assert.ok(!verify('sha256', Buffer.from(other), { key, padding }, signature));
  assert.deepEqual(
    [body.type, Object.keys(body).includes('event'), Date.parse(body.signed_at) > 0],
    ['fields.digests', false, true],
  );
  vault.clock.advance(60_000);
  const later = await vault.send('GET', '/fields/v1/digests.json');
  assert.ok(Date.parse(later.body.signed_at) >= Date.parse(body.signed_at) + 60_000);
  // A signature with PSS is another one each time, and anybody may ask for any number.
  const shared = await Promise.all(
    [1, 2, 3].map(() => vault.send('GET', '/fields/v1/digests.json')),
  );
  assert.equal(new Set(shared.map((one) => one.headers.get('svc-signature'))).size, 1);
});

/** A server between the vault and its readers, which changes what it likes. */
async function startBetween(
  t: Lender,
  vault: TestVault,
  change: (path: string, text: string) => string,
): Promise<string> {
  const server = createServer(async ({ url = '' }, response) => {
    const { status, text, headers } = await vault.send('GET', url);
    const signature = headers.get('svc-signature');
    response.writeHead(status, { ...(signature && { 'svc-signature': signature }) });
    response.end(change(url, text));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('the check of the documentation passes for the vault, and finds each change on the way', async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const directory = temporaryDirectory(t);
  const guide = readFileSync(join(root, 'docs', 'pci-dss.md'), 'utf8');
  const program = /`check-fields\.mjs`[^`]*```js\n([\s\S]*?)```/.exec(guide)?.[1];
  assert.ok(program);
  writeFileSync(join(directory, 'check-fields.mjs'), program);
  const key = await vault.send('GET', '/keys/webhooks.v1.key');
  writeFileSync(join(directory, 'webhooks.v1.key'), key.text);
  const check = async (url: string) => {
    const child = spawn(process.execPath, ['check-fields.mjs', url], { cwd: directory });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (text += data));
    const [code] = await once(child, 'close');
    return `${code}: ${text.trim()}`;
  };
  assert.match(await check(vault.url), /^0: 3 files are as approved/);
  const changes = [
    [/digests/, 'sha384-', 'sha384-A', /^1: The vault did not sign the list/],
    [/loader\.js$/, '{', '{alert(1);', /^1: \/fields\/v1\/loader\.js is not what the list says/],
    [/frame-.*\.css$/, '{', '{color:red;', /^1: \/assets\/fields\/frame-.*css is not what/],
  ] as const;
  for (const [path, from, to, expected] of changes) {
    const between = await startBetween(t, vault, (asked, text) =>
      path.test(asked) ? text.replace(from, to) : text,
    );
    assert.match(await check(between), expected);
  }
  writeFileSync(join(directory, 'fields.json'), '[]');
  assert.match(await check(vault.url), /^1: The files are not the approved ones/);
  vault.clock.advance(-2 * 86_400_000);
  assert.match(await check(vault.url), /^1: The list is more than a day old/);
});
