/** GET /assets/{bundle}/{file}: what browsers load from the vault is the built file, byte for byte, and stays so. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { brotliCompressSync, brotliDecompressSync, constants, gunzipSync } from 'node:zlib';
import { buildBrowserFiles, writeBrowserFiles } from '../../scripts/browser-files.ts';
import { builtFile } from '../../src/browser/built-file.ts';
import { type BrowserFiles, createBrowserFiles } from '../../src/browser/files.ts';
import { pageHeaders } from '../../src/browser/page-headers.ts';
import { engineOf } from '../support/engines.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { startVault } from '../support/vault.ts';

const open = createBrowserFiles();

interface Encoded {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Without a client that decompresses. */
async function getEncoded(url: string, accepted: string): Promise<Encoded> {
  const request = get(url, { headers: { 'accept-encoding': accepted } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { headers: response.headers, body: Buffer.concat(await response.toArray()) };
}

const small = builtFile('a/b.js', Buffer.from('1'));
const decompressed = { br: brotliDecompressSync, gzip: gunzipSync } as const;

test('each file is served as it was built, under its digest, for 400 days', async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const { all } = await open();
  assert.ok(all.length > 0);
  for (const { path, integrity, mediaType } of all) {
    const { status, headers, text } = await vault.send('GET', path);
    assert.equal(status, 200, path);
    const digest = createHash('sha384').update(text).digest('base64');
    assert.equal(`sha384-${digest}`, integrity);
    assert.equal(headers.get('content-type'), mediaType);
    assert.equal(headers.get('cache-control'), 'public, max-age=34560000, immutable');
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    const etag = headers.get('etag') ?? '';
    assert.match(etag, /^"[\w-]{64}"$/);
    const again = await vault.send('GET', path, { headers: { 'if-none-match': etag } });
    assert.deepEqual([again.status, again.text], [304, '']);
  }
  const [first] = all;
  assert.ok(first);
  assert.equal((await vault.send('GET', `${first.path}x`)).status, 404);
  assert.equal((await vault.send('GET', `/assets/${first.name}`)).status, 404);
});

test('a compressed form has the same contents, and a strong tag of its own', async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const plain = await vault.send('GET', '/openapi.json');
  assert.equal(plain.headers.get('content-encoding'), null);
  for (const [encoding, accepted] of [
    ['br', 'gzip, deflate, br'],
    ['gzip', 'gzip, br;q=0'],
  ] as const) {
    const { headers, body } = await getEncoded(`${vault.url}/openapi.json`, accepted);
    assert.equal(headers['content-encoding'], encoding);
    assert.equal(headers['vary'], 'accept-encoding');
    assert.notEqual(headers['etag'], plain.headers.get('etag'));
    assert.equal(decompressed[encoding](body).toString(), plain.text);
  }
});

test('small bodies have the best compression, and large ones what is made in milliseconds', async () => {
  const { all } = await open();
  for (const { bytesMin, bytesMax, quality } of [
    { bytesMin: 10_000, bytesMax: 99_999, quality: 11 },
    // Of the description of the API, 10 and 11 take twenty times as long as 9.
    { bytesMin: 100_000, bytesMax: Number.POSITIVE_INFINITY, quality: 9 },
  ]) {
    const body = all
      .map((file) => file.body)
      .find(({ bytes }) => bytes.length >= bytesMin && bytes.length <= bytesMax);
    assert.ok(body);
    const params = {
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_SIZE_HINT]: body.bytes.length,
      [constants.BROTLI_PARAM_QUALITY]: quality,
    };
    const expected = brotliCompressSync(body.bytes, { params });
    assert.equal((await body.encodedFor('br')).bytes.length, expected.length);
  }
});

test('a bundle is one script or style sheet without imports, whose path changes with its contents', async (t) => {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, 'page'));
  const write = (name: string, text: string) => writeFileSync(join(directory, 'page', name), text);
  write('words.ts', "export const words: string = 'first';");
  write('page.ts', "import { words } from './words.ts'; document.title = words;");
  write('page.css', 'body { color: canvastext; }');
  const bundle = { name: 'example', folder: 'page', entryPoints: ['page.ts', 'page.css'] };
  const build = () =>
    createBrowserFiles({
      build: async () => (await buildBrowserFiles([bundle], directory)).files,
    })();
  const [css, js] = (await build()).all;
  assert.ok(css && js);
  assert.deepEqual([css.name, js.name], ['example/page.css', 'example/page.js']);
  assert.doesNotMatch(Buffer.from(js.body.bytes).toString(), /\bimport\b|\bexport\b/);
  assert.match(js.element, /^<script src="\/assets\/example\/page-[\w-]{22}\.js" integrity="/);
  write('words.ts', "export const words: string = 'second';");
  const changed = (await build()).named('example/page.js');
  assert.notEqual(changed.path, js.path);
  assert.equal((await build()).named('example/page.css').path, css.path);
});

test('a page runs the scripts that its policy names, and nobody shows it in a frame unless named', async () => {
  const file = (await createBrowserFiles({ build: async () => [small] })()).named('a/b.js');
  const strict = pageHeaders({ files: [file] });
  assert.equal(
    strict['content-security-policy'],
    `default-src 'none'; script-src '${file.integrity}'; style-src 'none'; connect-src 'self'; img-src 'self' data:; ` +
      "font-src data:; frame-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
      "require-trusted-types-for 'script'; trusted-types 'none'",
  );
  assert.equal(strict['x-frame-options'], 'DENY');
  assert.match(strict['permissions-policy'] ?? '', /(?:^|, )camera=\(\)(?:, |$)/);
  const frameAncestors = ['https://shop.example.com'];
  const shown = pageHeaders({ files: [file], frameAncestors, features: ['clipboard-write'] });
  assert.match(
    shown['content-security-policy'] ?? '',
    /; frame-ancestors https:\/\/shop\.example\.com;/,
  );
  assert.equal(shown['x-frame-options'], undefined);
  assert.match(shown['permissions-policy'] ?? '', /(?:^|, )clipboard-write=\(self\)(?:, |$)/);
});

test('a build has the files of the sources, and one that was changed after it is not served', async (t) => {
  const directory = temporaryDirectory(t);
  await writeBrowserFiles(directory);
  const built = createBrowserFiles({ directory: pathToFileURL(join(directory, 'browser/')) });
  const paths = ({ all }: BrowserFiles) => all.map(({ path }) => path);
  assert.deepEqual(paths(await built()), paths(await open()));
  writeFileSync(join(directory, 'browser', 'fields', 'loader.js'), 'alert(1)');
  const changed = createBrowserFiles({ directory: pathToFileURL(join(directory, 'browser/')) });
  await assert.rejects(changed(), { code: 'unavailable' });
});

test('files that cannot be read are a 503, and the next request tries again', async () => {
  let isThere = false;
  const files = createBrowserFiles({
    build: async () => {
      if (!isThere) throw new Error('not there');
      return [small];
    },
  });
  await assert.rejects(files(), { code: 'unavailable' });
  isThere = true;
  assert.equal((await files()).all.length, 1);
});
