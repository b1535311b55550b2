/** What a user installs: small, without dependencies, typed, and made of nothing but what every runtime has. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { buildPackage, clientModules } from '../../scripts/build-client.ts';
import { typeErrors } from '../support/packages.ts';
import { committedPaths, root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const folder = join(root, 'packages', 'client');
const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
/** What a page loads. */
const bytesMax = 12_288;

async function bundled(module: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [join(folder, 'src', `${module}.ts`)],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    write: false,
  });
  const [file] = outputFiles;
  assert.ok(file);
  return file.contents;
}

test('the client has at most 12,288 bytes for a browser, compressed', async () => {
  for (const module of clientModules) {
    const { length } = gzipSync(await bundled(module), { level: 9 });
    assert.ok(length <= bytesMax, `${module} has ${length} bytes`);
  }
});

test('the client has no dependency and imports nothing but its own files', () => {
  for (const kind of ['dependencies', 'peerDependencies', 'optionalDependencies']) {
    assert.equal(manifest[kind], undefined, kind);
  }
  const sources = committedPaths().filter((path) => /^packages\/client\/src\/.*\.ts$/.test(path));
  assert.ok(sources.length > 10);
  for (const path of sources) {
    const text = readFileSync(join(root, path), 'utf8').replace(/^ \*.*$|^ {3}\*.*$/gm, '');
    for (const [, from] of text.matchAll(/\bfrom '([^']+)'/g)) {
      assert.match(from ?? '', /^\.\/[\w-]+\.ts$/, path);
    }
  }
});

test('the client needs no types but those of the web', () => {
  const entries = clientModules.map((module) => join(folder, 'src', `${module}.ts`));
  assert.deepEqual(typeErrors(entries), []);
});

test('the package that is built has what its manifest exports, and its types hold for a user', async (t) => {
  const directory = join(temporaryDirectory(t), 'dist');
  await buildPackage('client', directory);
  const built = readdirSync(directory);
  for (const files of Object.values<Record<string, string>>(manifest.exports)) {
    for (const file of Object.values(files)) {
      assert.ok(existsSync(join(directory, file.replace('./dist/', ''))), file);
    }
  }
  const user = join(directory, 'user.mts');
  writeFileSync(
    user,
    `import { type CardData, Strongroom, verifyWebhook } from './client.js';
    import { verifyErasureReceipt } from './verify.js';
    const vault = new Strongroom({ url: 'https://vault.example.com', apiKey: 'key' });
    const token = await vault.tokens.get<CardData>('id');
    export const number: string | undefined = token.data?.number;
    export const { event } = await verifyWebhook({ body: '', headers: {}, secret: '' });
    export const erased: number = (
      await verifyErasureReceipt(await vault.tokens.erasure('id'), { publicKeys: [] })
    ).erased_at;
    export const wrong: number = token.id;`,
  );
  const errors = typeErrors([user], ['--noUnusedLocals']);
  assert.deepEqual(
    errors.map(({ line }) => line),
    [10],
    JSON.stringify(errors),
  );
  assert.ok(built.includes('client.js'));
  const loaded = await import(join(directory, 'client.js'));
  assert.equal(typeof loaded.Strongroom, 'function');
});

test('the package has the version and the license of the vault', () => {
  const whole = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  assert.equal(manifest.version, whole.version);
  assert.equal(manifest.license, whole.license);
});
