/** The first page of the README works as it is printed. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { engineOf } from '../support/engines.ts';
import { installClient } from '../support/packages.ts';
import { runProgram } from '../support/programs.ts';
import { python, withoutPython } from '../support/python.ts';
import { root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { managementKey, startVault, type TestVault } from '../support/vault.ts';

const readme = readFileSync(join(root, 'README.md'), 'utf8');
const start = readFileSync(join(root, 'docs', 'start.md'), 'utf8');
const sqlite = engineOf('sqlite');

function blocksOf(language: string, text = readme): readonly string[] {
  const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'));
  return [...blocks].map(([, text = '']) => text);
}

const at = ({ url }: TestVault, text: string) => text.replaceAll('http://127.0.0.1:8080', url);

const environment = { PYTHONPATH: join(root, 'packages', 'python', 'src') };

for (const [language, program, file, skip] of [
  ['ts', process.execPath, 'store.ts', false],
  ['python', python, 'store.py', withoutPython],
] as const) {
  test(`the example in ${language} creates a token`, { skip }, async (t) => {
    const vault = await startVault(t, sqlite);
    const key = await vault.application();
    const [text = ''] = blocksOf(language);
    assert.ok(readme.includes(file), 'with the file name that the text gives');
    const directory = temporaryDirectory(t);
    if (language === 'ts') await installClient(directory);
    const path = join(directory, file);
    writeFileSync(path, at(vault, text));
    const { code, stdout, stderr } = await runProgram([program, path], {
      ...environment,
      KEY: key,
    });
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

test('the guide for the start works step by step, as it is printed', async (t) => {
  const vault = await startVault(t, sqlite);
  let variables = '';
  let printed = '';
  let response = '';
  for (const step of blocksOf('sh', start)) {
    const [, name] = /^(\w+)=key_test_\w+…$/m.exec(step) ?? [];
    if (name !== undefined) {
      const key = name === 'MANAGEMENT' ? managementKey : JSON.parse(response).key;
      variables += `${name}=${key}\n`;
      continue;
    }
    const ran = await runProgram(['bash', '-c', at(vault, variables + step)], {});
    if (ran.code === 127) return;
    assert.equal(ran.code, 0, ran.stderr);
    response = ran.stdout;
    printed += ran.stdout;
  }
  const shown = ['"4242424242424242"', '"XXXXXXXXXXXX4242"', '"expiration_year":2034'];
  for (const text of [...shown, '"operation":"update"']) {
    assert.ok(printed.includes(text), `${text} in ${printed}`);
  }
  const read = { headers: { 'svc-api-key': /^KEY=(.*)$/m.exec(variables)?.[1] ?? '' } };
  assert.equal((await vault.send('GET', '/tokens/my-first-card', read)).status, 404);
});

/** Puts in what the start of the vault has printed. */
function fill(text: string): string {
  return `MANAGEMENT=${managementKey}\n${text.replace(/^MANAGEMENT=.*$/m, '')}`;
}
