/** A newcomer follows the tutorials in any order, with the keys of the first page, and sees what they print. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { examplesIn } from '../support/client-examples.ts';
import { engineOf } from '../support/engines.ts';
import { installClient } from '../support/packages.ts';
import { runProgram } from '../support/programs.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { managementKey, startVault } from '../support/vault.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');
/** What each prints, from its first line to its last. */
const printed: Readonly<Record<string, RegExp>> = {
  'bank-accounts': /^[\w-]{36}\nenabled\ntrue\n$/,
  'erase-a-customer': /^(?:[\w-]{36} \d{4}-\S+Z\n){2}$/,
  'migrate-from-another-vault': /^$/,
  'pay-through-a-provider': /^200 \{ approved: true, amount: 1999 \}\n(?:\w+ .+\n)+$/,
};

test('the key of the first page is enough for every tutorial, and none disturbs another', async (t) => {
  const called = await startCalled(t);
  called.destination.behave(async ({ response, received }) => {
    await received;
    const body = JSON.stringify({ approved: true, amount: 1999 });
    response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  });
  const vault = await startVault(t, engineOf('sqlite'), { environment: called.environment });
  const [, application] = /-d '(\{"name": "payments".*?)'$/ms.exec(read('docs/start.md')) ?? [];
  const body = JSON.parse(application ?? '');
  const created = await vault.send('POST', '/applications', { key: managementKey, body });
  const directory = temporaryDirectory(t);
  await installClient(directory);
  const environment = {
    STRONGROOM_URL: vault.url,
    STRONGROOM_KEY: created.body.key,
    MANAGEMENT: managementKey,
    PROVIDER_URL: called.url,
  };
  const forward = Object.keys(printed);
  for (const name of [...forward, ...forward.toReversed()]) {
    const path = `docs/tutorials/${name}.md`;
    const file = join(directory, `${name}.ts`);
    const steps = examplesIn(path, read(path)).map(({ code }) => code);
    writeFileSync(file, steps.join('\n'));
    const { code, stdout, stderr } = await runProgram([process.execPath, file], environment);
    assert.equal(code, 0, `${name}: ${stderr}`);
    assert.match(stdout, printed[name] as RegExp, name);
  }
});
