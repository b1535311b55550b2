/** The Python SDKs of the public product, as they are published, over every resource that the vault has too. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import { python } from '../support/python.ts';
import { root } from '../support/source.ts';
import { tenantsOf } from '../support/tenant.ts';
import { revealEverything } from '../support/vault.ts';

const sdks = [
  { name: 'basistheory', version: '3.0.0', program: 'public-client.py', resources: 7 },
  { name: 'basistheoryclient', version: '7.4.0', program: 'public-client-7.py', resources: 12 },
];

onBothEngines('the Python SDKs of the public product', (engine) => {
  const tenants = tenantsOf(engine, { environment: { STRONGROOM_HEADER_PREFIXES: 'SVC,BT' } });

  for (const { name, version, program, resources } of sdks) {
    const { status } = spawnSync(python, [
      '-c',
      `import importlib.metadata as m; assert m.version("${name}") == "${version}"`,
    ]);
    const skip = status !== 0 && `not here: a Python with ${name} ${version} (${python})`;

    test(`every resource works in ${version} as it does in the Node SDK`, { skip }, async () => {
      const tenant = await tenants();
      const rule = { ...revealEverything, transform: 'mask', permissions: ['token:create'] };
      const permissions = ['reactor:invoke', 'token-intent:read', 'token-intent:delete'];
      const keys = {
        url: tenant.vault.url,
        management: tenant.managementKey,
        private: await tenant.application({ rules: [revealEverything], permissions }),
        public: await tenant.application({
          type: 'public',
          rules: [rule],
          permissions: ['token-intent:create'],
        }),
      };
      const child = spawn(python, [join(root, 'tests', 'support', program)], {
        stdio: ['pipe', 'pipe', 'inherit'],
        env: { PATH: process.env['PATH'], PYTHONDONTWRITEBYTECODE: '1' },
      });
      const printed: Buffer[] = [];
      child.stdout.on('data', (chunk: Buffer) => printed.push(chunk));
      child.stdin.end(JSON.stringify(keys));
      const closed = once(child, 'close');
      const { reactorRuns } = tenant.vault.running.vault;
      while (child.exitCode === null && child.signalCode === null) {
        await reactorRuns?.look();
        await nextLook();
      }
      await closed;
      const outcomes: Record<string, string> = JSON.parse(String(Buffer.concat(printed)));
      assert.equal(Object.keys(outcomes).length, resources);
      for (const [resource, outcome] of Object.entries(outcomes)) {
        assert.equal(outcome, 'works', `${resource}: ${outcome}`);
      }
    });
  }
});
