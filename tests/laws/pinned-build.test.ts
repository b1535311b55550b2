/** What is installed is what was reviewed: every package by its digest, and nothing runs at its installation. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
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
  const { dependencies, devDependencies } = own as typeof manifest;
  assert.deepEqual(
    { dependencies, devDependencies },
    { dependencies: manifest.dependencies, devDependencies: manifest.devDependencies },
  );
});

test('no package of the running vault has an install script, and others are named one by one', () => {
  const scripted = Object.entries(packages).filter(([, one]) => one.hasInstallScript);
  assert.deepEqual(
    scripted.filter(([, { dev }]) => dev !== true).map(([path]) => path),
    [],
  );
  const names = scripted.map(([path]) => path.replace(/^.*node_modules\//, ''));
  for (const name of names) assert.ok(Object.hasOwn(manifest.allowScripts, name), name);
});

test('the build installs from the lock file alone', () => {
  const script = readFileSync(join(root, '.ci', 'run'), 'utf8');
  assert.match(script, /\bnpm ci\b/);
  assert.doesNotMatch(script, /\bnpm (?:i|install|update)\b/);
});
