/** The Python SDK of the public product, as it is published, over every resource that it has. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { python } from '../support/python.ts';
import { root } from '../support/source.ts';
import { tenantsOf } from '../support/tenant.ts';
import { revealEverything } from '../support/vault.ts';

const { status } = spawnSync(python, [
  '-c',
  'import importlib.metadata as m; assert m.version("basistheory") == "3.0.0"',
]);
const skip = status === 0 ? false : `not here: a Python with basistheory 3.0.0 (${python})`;

onBothEngines('the Python SDK 3.0 of the public product', (engine) => {
  const tenants = tenantsOf(engine, { environment: { STRONGROOM_HEADER_PREFIXES: 'SVC,BT' } });

  test('every resource works as it does in the Node SDK', { skip }, async () => {
    const tenant = await tenants();
    const rule = { ...revealEverything, transform: 'mask', permissions: ['token:create'] };
    const keys = {
      url: tenant.vault.url,
      management: tenant.managementKey,
      private: await tenant.application({
        rules: [revealEverything],
        permissions: ['reactor:invoke'],
      }),
      public: await tenant.application({ type: 'public', rules: [rule] }),
    };
    const child = spawn(python, [join(root, 'tests', 'support', 'public-client.py')], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'], PYTHONDONTWRITEBYTECODE: '1' },
    });
    const printed: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => printed.push(chunk));
    child.stdin.end(JSON.stringify(keys));
    await once(child, 'close');
    const outcomes: Record<string, string> = JSON.parse(String(Buffer.concat(printed)));
    assert.equal(Object.keys(outcomes).length, 7);
    for (const [resource, outcome] of Object.entries(outcomes)) {
      assert.equal(outcome, 'works', `${resource}: ${outcome}`);
    }
  });
});
