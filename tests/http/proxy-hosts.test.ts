/** Which requests a proxy gets by their Host: those for names that the operator gave to its tenant, and no other. */
import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy, leastProxy, sendProxy } from '../support/proxies.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { connectTo } from '../support/raw-request.ts';
import { newTenant, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const { destination, url, environment } = await startCalled({ after });
destination.behave(answer(200, [], 'from the destination'));
const domain = 'proxy.example.com';
const withDomain = { ...environment, STRONGROOM_PROXY_DOMAIN: 'Proxy.Example.com' };

const reached = 'from the destination';

/** Bytes as they are, which other clients would change. */
async function sendLines(vaultUrl: string, lines: readonly string[]): Promise<string> {
  const { socket, answer: text } = await connectTo(vaultUrl);
  socket.write(`${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`);
  return text;
}

const get = (tenant: TestTenant, path: string, host: string) =>
  tenant.vault.send('GET', path, { headers: { host } });

onBothEngines('Hosts of proxies', (engine) => {
  const tenants = tenantsOf(engine, { environment: withDomain });
  const open = { destination_url: `${url}/base`, require_auth: false };

  /** The engine that is embedded shows one turn of the event loop the same. */
  async function alter(tenant: TestTenant, sql: string): Promise<void> {
    await engine.run(tenant.vault.place, sql);
    tenant.vault.clock.advance(1001);
    await new Promise((resolve) => setImmediate(resolve));
  }

  test('400: no management key takes a name that the operator did not give to its tenant', async () => {
    const [tenant, other] = [await tenants(), await tenants()];
    await other.giveHosts('of-another.example.com');
    const { id } = await createProxy(tenant, open);
    for (const proxy_host of [
      'vault.internal.example.com',
      'of-another.example.com',
      `${'a'.repeat(38)}.${domain}`,
    ]) {
      const body = { ...leastProxy, ...open, proxy_host };
      for (const [method, path] of [
        ['POST', ''],
        ['PUT', `/${id}`],
        ['PATCH', `/${id}`],
      ] as const) {
        const refused = await sendProxy(tenant, method, path, { body });
        assert.equal(refused.status, 400, refused.text);
        assert.match(refused.body.errors.proxy_host[0], /strongroom tenant hosts add/);
      }
      assert.equal((await get(tenant, '/healthz', proxy_host)).text.includes(reached), false);
    }
    assert.equal((await tenant.rows('proxies')).length, 1);
    assert.equal((await tenant.rows('proxy_addresses')).length, 1);
  });

  test('a name that was given leads to the base, without /proxy', async () => {
    const tenant = await tenants();
    const proxy_host = 'given.example.com';
    await createProxy(tenant, { ...open, proxy_host });
    for (const [path, to] of [
      ['/x', '/base/x'],
      ['/readyz', '/base/readyz'],
      ['/', '/base'],
      ['//x', '/base//x'],
    ] as const) {
      assert.equal((await get(tenant, path, proxy_host)).text, reached, path);
      assert.equal(destination.requests.at(-1)?.url, to);
    }
    assert.equal((await get(tenant, '/x', 'GIVEN.example.com.:8443')).text, reached);
  });

  test('every proxy has a name that begins with its key, in any case, and needs none other', async () => {
    const tenant = await tenants();
    const created = await createProxy(tenant, open);
    const own = `${created.key}.${domain}`;
    assert.equal(created.proxy_host, own.toLowerCase());
    for (const host of [own, own.toLowerCase(), own.toUpperCase(), `${own}.:443`]) {
      assert.equal((await get(tenant, '/x', host)).text, reached, host);
    }
    // What a client was shown it may send back.
    const body = { ...leastProxy, ...open, proxy_host: created.proxy_host };
    const replaced = await sendProxy(tenant, 'PUT', `/${created.id}`, { body });
    assert.equal(replaced.status, 200, replaced.text);
    assert.equal(replaced.body.proxy_host, own.toLowerCase());
    assert.equal((await tenant.rows('proxies'))[0]?.host, null);
    assert.equal((await get(tenant, '/x', own)).text, reached);
    await sendProxy(tenant, 'DELETE', `/${created.id}`);
    assert.equal((await get(tenant, '/x', own)).status, 404);
  });

  test('a name that is taken from a tenant leads nowhere, and to another tenant once that has it', async () => {
    const [tenant, next] = [await tenants(), await tenants()];
    const proxy_host = 'handed-on.example.com';
    const { id } = await createProxy(tenant, { ...open, proxy_host });
    assert.equal((await get(tenant, '/x', proxy_host)).text, reached);
    await tenant.takeHosts(proxy_host);
    assert.equal((await get(tenant, '/healthz', proxy_host)).status, 200);
    assert.notEqual((await get(tenant, '/healthz', proxy_host)).text, reached);
    assert.equal((await get(tenant, '/x', proxy_host)).status, 404);
    await createProxy(next, { ...open, destination_url: `${url}/next`, proxy_host });
    assert.equal((await get(next, '/x', proxy_host)).text, reached);
    assert.equal(destination.requests.at(-1)?.url, '/next/x');
    // The older proxy can be changed, and deleted, without a word about its host.
    const renamed = await sendProxy(tenant, 'PATCH', `/${id}`, { body: { name: 'Renamed' } });
    assert.equal(renamed.status, 204, renamed.text);
    assert.equal((await sendProxy(tenant, 'DELETE', `/${id}`)).status, 204);
    assert.equal((await get(next, '/x', proxy_host)).text, reached);
    // And back again.
    await next.takeHosts(proxy_host);
    const back = await createProxy(tenant, { ...open, proxy_host });
    assert.equal((await get(tenant, '/x', proxy_host)).text, reached);
    await tenant.takeHosts(proxy_host);
    await next.giveHosts(proxy_host);
    await next.takeHosts(proxy_host);
    await tenant.giveHosts(proxy_host);
    const body = { ...leastProxy, ...open, proxy_host };
    assert.equal((await sendProxy(tenant, 'PUT', `/${back.id}`, { body })).status, 200);
    assert.equal((await get(tenant, '/x', proxy_host)).text, reached);
  });

  test('a row of an older release, or one that the vault did not write, gives no name', async () => {
    const [tenant, other] = [await tenants(), await tenants()];
    const proxy_host = 'never-given.example.com';
    await createProxy(tenant, { ...open, proxy_host });
    await other.giveHosts('other-given.example.com');
    const where = `where host = '${proxy_host}'`;
    const [row] = await tenant.rows('tenant_hosts');
    await alter(tenant, `update tenant_hosts set created_at = 1 ${where}`);
    assert.equal((await get(tenant, '/x', proxy_host)).status, 404);
    await alter(tenant, `delete from tenant_hosts ${where}`);
    assert.equal((await get(tenant, '/x', proxy_host)).status, 404);
    assert.notEqual((await get(tenant, '/readyz', proxy_host)).text, reached);
    // The row of another name, with its proof.
    const moved = `update tenant_hosts set host = '${proxy_host}', tenant_id = '${row?.tenant_id}'`;
    await alter(tenant, `${moved} where host = 'other-given.example.com'`);
    assert.equal((await get(tenant, '/x', proxy_host)).status, 404);
  });

  test('what the vault answers itself is its own under every other Host', async (t) => {
    const vault = await startVault(t, engine, {
      environment: { ...withDomain, STRONGROOM_PUBLIC_URL: 'https://vault.example.com' },
    });
    const tenant = await newTenant(vault);
    await createProxy(tenant, { ...open, proxy_host: 'one.example.com' });
    const { key } = await createProxy(tenant, open);
    const count = destination.requests.length;
    for (const host of [
      ...['vault.example.com', 'VAULT.example.com:443', 'vault.example.com.', hostname()],
      ...[domain, `x.${domain}`, `${key}.x.${domain}`, `x${key}.${domain}`, `${key}.example.com`],
      ...['example.com', 'x.one.example.com', 'one.example.com.example.com', 'localhost'],
      ...['127.0.0.1', '127.0.0.1:8080', '[::1]', '[::1]:443', ''],
    ]) {
      for (const path of ['/healthz', '/readyz', '/metrics', '/docs', '/openapi.json', '/ping']) {
        const text = await sendLines(vault.url, [`GET ${path} HTTP/1.1`, `Host: ${host}`]);
        assert.match(text, /^HTTP\/1\.1 200 /, `${host} ${path}`);
      }
    }
    assert.equal(destination.requests.length, count);
  });

  test('400: two hosts, a host that is none, and a URL of another host', async () => {
    const tenant = await tenants();
    const proxy_host = 'smuggled.example.com';
    await createProxy(tenant, { ...open, proxy_host });
    const count = destination.requests.length;
    for (const lines of [
      ['GET /healthz HTTP/1.1', 'Host: localhost', `Host: ${proxy_host}`],
      ['GET /healthz HTTP/1.1', `Host: ${proxy_host}`, `host: ${proxy_host}`],
      ['GET /x HTTP/1.1', `Host: user@${proxy_host}`],
      ['GET /x HTTP/1.1', `Host: ${proxy_host}/x`],
      ['GET /x HTTP/1.1', `Host: ${proxy_host}, localhost`],
      ['GET /x HTTP/1.1', `Host: ${proxy_host}:x`],
      ['GET /x HTTP/1.1', 'Host: %73muggled.example.com'],
      ['GET /x HTTP/1.1', `Host: http://${proxy_host}`],
      [`GET http://${proxy_host}/x HTTP/1.1`, 'Host: localhost'],
      [`GET http://localhost/healthz HTTP/1.1`, `Host: ${proxy_host}`],
      [`GET http://${proxy_host}:8080/x HTTP/1.1`, `Host: ${proxy_host}`],
      [`GET http://u@${proxy_host}/x HTTP/1.1`, `Host: ${proxy_host}`],
      ['GET http:///x HTTP/1.1', 'Host: '],
      [`GET ftp://${proxy_host}/x HTTP/1.1`, `Host: ${proxy_host}`],
    ]) {
      const text = await sendLines(tenant.vault.url, lines);
      assert.match(text, /^HTTP\/1\.1 400 /, lines.join(' '));
      assert.doesNotMatch(text, /smuggled/);
    }
    assert.equal(destination.requests.length, count);
  });

  test('a URL of the same host is its path', async () => {
    const tenant = await tenants();
    const proxy_host = 'absolute.example.com';
    await createProxy(tenant, { ...open, proxy_host });
    for (const [target, host, to] of [
      [`http://${proxy_host}/x?y=1`, proxy_host, '/base/x?y=1'],
      [`HTTP://Absolute.example.com:80`, proxy_host, '/base'],
      [`https://${proxy_host}?y`, `${proxy_host}:443`, '/base?y'],
    ] as const) {
      const text = await sendLines(tenant.vault.url, [`GET ${target} HTTP/1.1`, `Host: ${host}`]);
      assert.match(text, /^HTTP\/1\.1 200 /, target);
      assert.equal(destination.requests.at(-1)?.url, to);
    }
    const lines = ['GET http://localhost/healthz HTTP/1.1', 'Host: localhost'];
    assert.match(await sendLines(tenant.vault.url, lines), /^HTTP\/1\.1 200 /);
    const old = await sendLines(tenant.vault.url, ['GET /healthz HTTP/1.0']);
    assert.match(old, /^HTTP\/1\.1 200 /);
  });
});
