/** The first page of the README works as it is printed. */
import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildClient } from '../../scripts/build-client.ts';
import { engineOf } from '../support/engines.ts';
import { runProgram } from '../support/programs.ts';
import { root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { managementKey, startVault, type TestVault } from '../support/vault.ts';

const readme = readFileSync(join(root, 'README.md'), 'utf8');
const sqlite = engineOf('sqlite');

function blocksOf(language: string): readonly string[] {
  const blocks = readme.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'));
  return [...blocks].map(([, text = '']) => text);
}

/** As `npm install` of the built package does. */
async function installClient(directory: string): Promise<void> {
  const target = join(directory, 'node_modules', '@strongroom', 'client');
  await buildClient(join(target, 'dist'));
  cpSync(join(root, 'packages', 'client', 'package.json'), join(target, 'package.json'));
}

const at = ({ url }: TestVault, text: string) => text.replaceAll('http://127.0.0.1:8080', url);

for (const [language, program, file] of [
  ['ts', process.execPath, 'store.ts'],
  ['python', 'python3', 'store.py'],
] as const) {
  test(`the example in ${language} creates a token`, async (t) => {
    const vault = await startVault(t, sqlite);
    const key = await vault.application();
    const [text = ''] = blocksOf(language);
    assert.ok(readme.includes(file), 'with the file name that the text gives');
    const directory = temporaryDirectory(t);
    if (language === 'ts') await installClient(directory);
    const path = join(directory, file);
    writeFileSync(path, at(vault, text));
    const { code, stdout, stderr } = await runProgram([program, path], { KEY: key });
    // Not every machine has a Python.
    if (code === 'absent') return;
    assert.equal(code, 0, stderr);
    const read = await vault.send('GET', `/tokens/${stdout.trim()}`, { key });
    assert.equal(read.body.data, 'Ada Lovelace');
  });
}

test('the lines of the first page store, read, change and delete a card', async (t) => {
  const vault = await startVault(t, sqlite);
  const [create = '', use = ''] = blocksOf('sh').filter((text) => text.includes('curl '));
  const made = await runProgram(['bash', '-c', at(vault, fill(create))], {});
  if (made.code === 127) return;
  assert.equal(made.code, 0, made.stderr);
  const { key } = JSON.parse(made.stdout);
  const { stdout } = await runProgram(
    ['bash', '-c', at(vault, fill(use).replace(/key_test_pvt_…/, key))],
    {},
  );
  for (const text of ['"expiration_year":2030', '"expiration_year":2034', '"operation":"update"']) {
    assert.ok(stdout.includes(text), `${text} in ${stdout}`);
  }
  const gone = await vault.send('GET', '/tokens/my-first-card', { key });
  assert.equal(gone.status, 404);
});

/** Puts in what the start of the vault has printed. */
function fill(text: string): string {
  return `MANAGEMENT=${managementKey}\n${text.replace(/^MANAGEMENT=.*$/m, '')}`;
}
