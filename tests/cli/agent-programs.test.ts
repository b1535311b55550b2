/** The tutorial for agents, followed as it is printed: each program uses values that it never has. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { withoutBrowser } from '../support/browser.ts';
import { codeBlocksOf } from '../support/code-blocks.ts';
import { engineOf } from '../support/engines.ts';
import { compileCache } from '../support/process.ts';
import { runProgram } from '../support/programs.ts';
import { python } from '../support/python.ts';
import { root } from '../support/source.ts';
import { freePort, temporaryDirectory } from '../support/temporary.ts';
import { managementKey, revealEverything, startVault } from '../support/vault.ts';

const guide = 'docs/tutorials/agents.md';
const noRequests = spawnSync(python, ['-c', 'import requests']).status !== 0;
const noPrograms = ['curl', 'jq', 'openssl'].some((name) => spawnSync(name, ['--help']).error);
const skip =
  withoutBrowser ||
  (noPrograms && 'not here: curl, jq, or openssl') ||
  (noRequests && `not here: a Python with requests (${python})`);

test('the programs of the tutorial charge a card that they never have', { skip }, async (t) => {
  const text = readFileSync(join(root, guide), 'utf8');
  const directory = temporaryDirectory(t);
  const folder = join(directory, 'agents');
  const port = await freePort();
  const here = (code: string) => code.replaceAll('9443', `${port}`);
  const blocks = codeBlocksOf(guide, text).filter(({ language }) => language === 'sh');
  const [prepare = '', provide = '', start = '', ...steps] = blocks.map(({ code }) => here(code));
  execFileSync('bash', ['-ec', prepare], { cwd: directory, stdio: 'ignore' });
  const files = text.matchAll(/\bSave this as `([\w.]+)`[^`]*?\n\n```\w+\n(.*?)^```/gms);
  for (const [, name = '', code = ''] of files) writeFileSync(join(folder, name), here(code));

  const provider = spawn('bash', ['-c', `exec ${provide}`], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => provider.kill());
  const charged: string[] = [];
  const ready = Promise.withResolvers<void>();
  createInterface({ input: provider.stdout }).on('line', (line) => {
    charged.push(line);
    ready.resolve();
  });
  await ready.promise;

  const given = [...start.matchAll(/^(STRONGROOM_\w+)=(\S+)/gm)].map(
    ([, name = '', value = '']) => [
      name,
      value.replace('8082', '0').replace('/path/to/agents', folder),
    ],
  );
  assert.equal(given.length, 3);
  const environment: Readonly<Record<string, string>> = Object.fromEntries(given);
  const vault = await startVault(t, engineOf('sqlite'), { environment });
  const permissions = ['proxy:invoke'];
  const KEY = await vault.application({ rules: [revealEverything], permissions });

  const values: Readonly<Record<string, string>> = {
    MANAGEMENT: managementKey,
    KEY,
    MODEL_HOST: 'model.example.com',
    MODEL_KEY: 'a-key-of-the-model',
    CODE_HOST: 'code.example.com',
    CODE_KEY: 'a-key-of-the-code',
    REGISTRY_HOST: 'packages.example.com',
  };
  const script = steps
    .join('\n')
    .replaceAll('http://127.0.0.1:8080', vault.url)
    .replaceAll('/path/to/strongroom', root)
    .replaceAll(/^(\w+)=(?:key_test_\w+)?…/gm, (_, name: string) => `${name}=${values[name]}`)
    .replace(/^npm install .*$/m, '')
    .replace(/CHROMIUM=\S+/, 'CHROMIUM=/usr/bin/chromium-headless-shell')
    .replace('python3 report.py', `${python} report.py`)
    // Namespaces, and an agent of the reader.
    .replace(/^strongroom agent run --only .*$/m, '');
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const { code, stdout, stderr } = await runProgram(
    ['bash', '-c', `set -euo pipefail; cd ${folder}\n${script}`],
    {
      ...compileCache,
      HOME: directory,
      PATH: `${join(root, 'node_modules', '.bin')}:${process.env['PATH']}`,
      STRONGROOM_URL: vault.url,
      STRONGROOM_EGRESS_ADDRESS: new URL(vault.running.egressUrl ?? '').host,
    },
  );
  assert.equal(code, 0, stderr + stdout);
  const quoted = (form: RegExp) => [...text.matchAll(form)].map(([, said = '']) => said);
  for (const said of quoted(/prints\s`([^`]+)`/g)) {
    assert.ok([...charged, stdout].join('\n').includes(said), `${said} in ${stdout}${charged}`);
  }
  assert.deepEqual(charged.slice(1), [
    'Charged 1999 to the card that ends in 4242.',
    'The form was sent with the card that ends in 4242.',
  ]);
  assert.match(stdout, /\tuse\t/);
  const key = readFileSync(join(folder, 'agent.key'), 'utf8').trim();
  const { body } = await vault.send('GET', '/applications/key', { key });
  assert.deepEqual(
    body.egress.map(({ host }: { host: string }) => host),
    ['model.example.com', 'code.example.com', 'packages.example.com'],
  );
});
