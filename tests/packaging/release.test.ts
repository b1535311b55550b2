/** A release is the package, the bill of its materials, checksums of both, and a signature that anyone can verify. */
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, verify } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeRelease } from '../../scripts/release.ts';
import { root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const { version, dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

test('its checksums are those of its files, its signature is that of the key, and each dependency is listed', (t) => {
  const directory = temporaryDirectory(t);
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const files = makeRelease({ directory, key: privateKey });
  assert.deepEqual(files, [
    `strongroom-${version}.cdx.json`,
    `strongroom-${version}.tgz`,
    'SHA256SUMS',
    'SHA256SUMS.sig',
  ]);
  const read = (file: string) => readFileSync(join(directory, file));
  const sums = read('SHA256SUMS');
  assert.ok(verify(null, sums, publicKey, read('SHA256SUMS.sig')));
  for (const file of files.slice(0, 2)) {
    const digest = createHash('sha256').update(read(file)).digest('hex');
    assert.ok(sums.toString().includes(`${digest}  ${file}\n`));
  }
  const bill = JSON.parse(read(files[0] ?? '').toString());
  assert.equal(bill.bomFormat, 'CycloneDX');
  const listed = bill.components.map((one: { group?: string; name: string; version: string }) =>
    [one.group, one.name].filter(Boolean).join('/'),
  );
  for (const name of Object.keys(dependencies)) assert.ok(listed.includes(name), name);
  const record = readFileSync(join(root, 'docs/adr/0001-runtime-dependencies.md'), 'utf8');
  assert.ok(record.includes(`the whole installation is ${listed.length} packages`));
});

test('a directory that has files already stays as it is', (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'other'), '');
  const { privateKey } = generateKeyPairSync('ed25519');
  assert.throws(() => makeRelease({ directory, key: privateKey }), /is not empty/);
});
