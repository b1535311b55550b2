/** The requests of the guides do what the guides say, as they are printed. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { codeBlocksOf } from '../support/code-blocks.ts';
import { engineOf } from '../support/engines.ts';
import { runProgram } from '../support/programs.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { visa } from '../support/values.ts';
import { revealEverything, startVault, type TestVault } from '../support/vault.ts';

/** And a part of what their requests print. */
const guides: Readonly<Record<string, readonly string[]>> = {
  access: ['"shown":"masked"', '"number":"4242424242424242"', '"name":"Acme"'],
  audit: ['"shown":"revealed"'],
  'bank-verification': ['{"status":"enabled"}', '"brand":"visa"'],
  bulk: ['"line":3,"status":201', '"data.number"', '{"exported":'],
  'find-and-resolve': ['ends in 4242'],
  proxies: ['{"paid":true}'],
  reactors: ['{"raw":{"last4":"4242"}'],
  webhooks: ['"secret":"whsec_'],
};

const ends: (() => unknown)[] = [];
const called = await startCalled({ after });
let vault: TestVault;

before(async () => {
  called.destination.behave(async ({ response, received }) => {
    await received;
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"paid":true}');
  });
  const lender = { after: (end: () => unknown) => void ends.unshift(end) };
  vault = await startVault(lender, engineOf('sqlite'), { environment: called.environment });
});

after(async () => {
  for (const end of ends) await end();
});

for (const [guide, shown] of Object.entries(guides)) {
  test(`docs/${guide}.md`, async (t) => {
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'my-first-card', type: 'card', data: { ...visa } });
    const permissions = ['token:use', 'proxy:invoke', 'reactor:invoke'];
    const KEY = await tenant.application({ rules: [revealEverything], permissions });
    const PUBLIC = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const variables = { MANAGEMENT: tenant.managementKey, KEY, PRIVATE: KEY, PUBLIC };
    // Somebody has seen the card.
    await tenant.send('GET', '/tokens/my-first-card', { key: KEY });
    const path = `docs/${guide}.md`;
    const steps = codeBlocksOf(path, readFileSync(join(root, path), 'utf8'))
      .filter(({ language, code }) => language === 'sh' && isRequest(code))
      .map(({ code }) => code);
    const script = [
      'set -euo pipefail',
      'curl() { command curl --silent --show-error --fail-with-body "$@"; }',
      ...steps,
    ]
      .join('\n')
      .replaceAll('http://127.0.0.1:8080', vault.url)
      .replaceAll('https://psp.example.com/v1', called.url)
      .replace(/^(\w+)=key_test_\w+…$/gm, (_, name: keyof typeof variables) => {
        return `${name}=${variables[name]}`;
      });
    const directory = temporaryDirectory(t);
    writeFileSync(join(directory, 'steps.sh'), script);
    const ran = await runProgram(['bash', '-c', `cd ${directory} && bash steps.sh`], {});
    // Not every machine has curl and jq.
    if (ran.code === 127) return;
    assert.equal(ran.code, 0, ran.stderr + ran.stdout);
    for (const text of shown) assert.ok(ran.stdout.includes(text), `${text} in ${ran.stdout}`);
  });
}

/** Requests, and what only names values for them. */
function isRequest(code: string): boolean {
  const lines = code.split('\n').filter((line) => line.trim() !== '');
  return /\bcurl /.test(code) || lines.every((line) => /^\w+=/.test(line));
}
