/** `strongroom mcp`: an agent gets the tools of a vault from a command, and neither a key nor a value. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { engineOf } from '../support/engines.ts';
import { agentOverPipes, revisions } from '../support/mcp-clients.ts';
import { main, runCommand } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const ends: (() => unknown)[] = [];
const lender = { after: (end: () => unknown) => void ends.unshift(end) };
after(async () => {
  for (const end of ends) await end();
});

const vault = await startVault(lender, engineOf('sqlite'), {
  environment: { STRONGROOM_EGRESS_ADDRESS: '127.0.0.1:0' },
});
const tenant = await newTenant(vault);
const data = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };
await tenant.token({ id: 'card', type: 'card', data });
const keyFile = join(temporaryDirectory(lender), 'agent.key');
writeFileSync(keyFile, `${tenant.key}\n`, { mode: 0o600 });
const environment = { PATH: process.env['PATH'] ?? '', STRONGROOM_URL: vault.url };

suite('strongroom mcp', () => {
  for (const revision of revisions) {
    test(`a client that negotiates ${revision} over pipes lists the tools and calls one`, async () => {
      const command = {
        command: process.execPath,
        args: [main, 'mcp', '--key-file', keyFile],
        env: environment,
      };
      const agent = await agentOverPipes(lender, command, revision);
      assert.ok((await agent.names()).includes('http_request'));
      const { whole, isError } = await agent.call('get_token', { id: 'card' });
      assert.equal(isError, false, whole);
      assert.ok(whole.includes('XXXXXXXXXXXX4242') && !whole.includes(data.number), whole);
      const { isError: isRefused, result } = await agent.call('get_token', { id: 'none' });
      assert.deepEqual([isRefused, result['status']], [true, 404]);
    });
  }

  test('a key that the vault refuses, or a vault without tools, is said before an agent begins', async () => {
    const wrong = await runCommand(['mcp'], {
      ...environment,
      STRONGROOM_KEY: tenant.managementKey,
    });
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /the vault returned 403: This request needs a private API key/);
    const bare = await startVault(lender, engineOf('sqlite'));
    const absent = await runCommand(['mcp'], {
      STRONGROOM_URL: bare.url,
      STRONGROOM_KEY: (await newTenant(bare)).key,
    });
    assert.equal(absent.code, 1);
    assert.match(absent.stderr, /404/);
  });
});
