/** Callers and destinations that mean harm: what they send leads nowhere that it should not. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer, raw } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy } from '../support/proxies.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { connectTo } from '../support/raw-request.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });

/** The path as it is, which other clients would change. */
async function sendRaw(tenant: TestTenant, path: string, key: string): Promise<string> {
  const { socket, answer: text } = await connectTo(tenant.vault.url);
  const lines = [`GET ${path} HTTP/1.1`, 'Host: localhost', `SVC-API-KEY: ${tenant.key}`];
  socket.write(`${[...lines, `SVC-PROXY-KEY: ${key}`, 'Connection: close'].join('\r\n')}\r\n\r\n`);
  return text;
}

onBothEngines('Hostile callers of proxies', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('no part of a path that is taken literally, and no value, leads out of the base', async () => {
    const tenant = await newTenant();
    const { key } = await createProxy(tenant, {
      destination_url: `${url}/base`,
      allowed_paths: ['/charges/*'],
      configuration: { UP: '../admin', DOT: '.', NAME: 'a b/c' },
    });
    destination.behave(answer());
    const before = destination.requests.length;
    for (const path of [
      '/charges/{%raw%}..{%endraw%}/{%raw%}..{%endraw%}/admin/{{config:NAME}}',
      '/charges/.{%raw%}.{%endraw%}/admin/{{config:NAME}}',
      '/charges/{%raw%}%2e{%endraw%}./{{config:NAME}}',
      '/charges/{%raw%}{%endraw%}/{{config:NAME}}',
      '/charges/{{config:UP}}',
      '/charges/{{config:DOT}}{%raw%}.{%endraw%}',
    ]) {
      const text = await sendRaw(tenant, `/proxy${path}`, key);
      assert.match(text, /^HTTP\/1\.1 400 /, path);
      assert.match(text, /proxy_error/, path);
    }
    assert.equal(destination.requests.length, before);
    const text = await sendRaw(
      tenant,
      '/proxy/charges/{%raw%}{{x}}{%endraw%}/{{config:NAME}}',
      key,
    );
    assert.match(text, /^HTTP\/1\.1 200 /);
    assert.equal(destination.requests.at(-1)?.url, '/base/charges/{{x}}/a%20b%2Fc');
  });

  test('no destination chooses the framing of a failure of the vault', async () => {
    const tenant = await newTenant();
    const { key } = await createProxy(tenant, { destination_url: url });
    for (const status of ['000', '099']) {
      destination.behave(raw(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\nX-A: b\r\n\r\n`));
      const text = await sendRaw(tenant, '/proxy', key);
      assert.match(text, /^HTTP\/1\.1 502 /);
      assert.equal(text.match(/content-length/gi)?.length, 1, text);
      assert.doesNotMatch(text, /x-a/i);
    }
  });
});
