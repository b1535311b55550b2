/** `strongroom tenant hosts …`, beside a server that runs on the same data. */
import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { sendProxy } from '../support/proxies.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

onBothEngines('the operator’s commands for host names', (engine) => {
  test('a name is given, listed and taken; the log says so, and explains every row', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const environment = environmentOf(vault.place);
    const run = (...words: string[]) => runCommand(words, environment);
    const hosts = (...words: string[]) => run('tenant', 'hosts', ...words, '--tenant', tenant.id);
    const name = 'partner.example.com';
    const added = await hosts('add', 'Partner.Example.com.', '--json');
    assert.deepEqual(JSON.parse(added.stdout), { name, tenant_id: tenant.id });
    assert.equal((await hosts('add', name)).code, 0);
    const listed = (await hosts('list', '--json')).stdout.trim().split('\n');
    assert.deepEqual(
      listed.map((line) => JSON.parse(line).name),
      [name],
    );
    assert.match((await hosts('list')).stdout, /^NAME +ADDED\npartner\.example\.com +2/);
    const body = { name: 'n', destination_url: 'https://psp.example.com', proxy_host: name };
    const created = await sendProxy(tenant, 'POST', '', { body });
    assert.equal(created.status, 201, created.text);

    const other = await run('tenant', 'create', '--name', 'other', '--json');
    assert.equal(other.code, 0, other.stderr);
    for (const command of ['add', 'remove']) {
      const refused = await run('tenant', 'hosts', command, name, '--tenant', 'other');
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /given/);
    }
    const removed = await hosts('remove', name, '--json');
    assert.deepEqual(JSON.parse(removed.stdout), { name, tenant_id: tenant.id });
    assert.equal((await hosts('list')).stdout.split('\n').length, 2);
    assert.equal((await hosts('remove', name)).code, 1);
    assert.equal((await run('tenant', 'hosts', 'add', name, '--tenant', 'other')).code, 0);
    const said = (await tenant.rows('logs')).filter((one) => one.entity_type === 'tenant_host');
    assert.deepEqual(
      said.map(({ operation, entity_id, actor_type }) => [operation, entity_id, actor_type]),
      [
        ['create', name, 'operator'],
        ['create', name, 'operator'],
        ['delete', name, 'operator'],
      ],
    );
    const verified = await run('logs', 'verify', '--state');
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    assert.equal((await run('tenant', 'delete', '--tenant', 'other', '--yes')).code, 0);
    assert.deepEqual(await engine.run(vault.place, 'select host from tenant_hosts'), []);
  });

  test('the vault’s own names, loopback, addresses and names without a dot are given to no tenant', async (t) => {
    const vault = await startVault(t, engine);
    const environment = environmentOf(vault.place, {
      STRONGROOM_PUBLIC_URL: 'https://vault.example.com:8443',
      STRONGROOM_HOST: 'listen.example.com',
      STRONGROOM_TLS: 'off',
      STRONGROOM_PROXY_DOMAIN: 'proxy.example.com',
    });
    for (const name of [
      ...['vault.example.com', 'VAULT.example.com.', 'listen.example.com', hostname()],
      ...['proxy.example.com', 'x.proxy.example.com', 'a.b.proxy.example.com'],
      ...['localhost', 'x.localhost', 'localhost.localdomain', 'vault', 'vault.', ''],
      ...['127.0.0.1', '127.1', '0x7f.0.0.1', '::1', '[::1]', '2130706433'],
      ...['a.example.com:443', '*.example.com', 'a..example.com', 'https://a.example.com', 'a b.c'],
    ]) {
      const words = ['tenant', 'hosts', 'add', name, '--tenant', 'default'];
      const refused = await runCommand(words, environment);
      assert.notEqual(refused.code, 0, name);
    }
    assert.deepEqual(await engine.run(vault.place, 'select host from tenant_hosts'), []);
  });
});
