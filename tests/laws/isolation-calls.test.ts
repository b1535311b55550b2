/** Tenants cannot meet in a proxy call either: what is another's is as if it did not exist. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { pooledRandom } from '../../src/base/random.ts';
import { newProxyKey } from '../../src/keys/proxy-key.ts';
import { echo } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy } from '../support/proxies.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { type Received, startVault } from '../support/vault.ts';

const { destination, url, environment } = await startCalled({ after });
const marker = 'The-Victims-Secret';
const missing = randomUUID();

/** What may name an id, in each place that an expression may stand in. */
const places: Readonly<Record<string, (id: string) => object>> = {
  'a body': (id) => ({ body: { value: `{{ ${id} }}` } }),
  'a body, by its kind': (id) => ({ body: { value: `{{ token: ${id} }}` } }),
  'a body, of intents': (id) => ({ body: { value: `{{ token_intent: ${id} }}` } }),
  'a header': (id) => ({ headers: { 'x-value': `{{ ${id} }}` } }),
  'a query': (id) => ({ path: `?value={{${id}}}` }),
  'a path': (id) => ({ path: `/{{${id}}}` }),
};

interface Given {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

onBothEngines('tenants are apart in calls of proxies', (engine) => {
  test('a foreign token, intent or proxy is answered like one that does not exist, and nothing is sent', async (t) => {
    const vault = await startVault(t, engine, { environment });
    const [victim, intruder] = [await newTenant(vault), await newTenant(vault)];
    const host = 'victim.example.com';
    const given = { destination_url: url, configuration: { owner: marker } };
    const proxy = await createProxy(victim, given);
    await createProxy(victim, { ...given, proxy_host: host });
    const own = await createProxy(intruder, { destination_url: url, name: marker.toLowerCase() });
    const { body: token } = await victim.token({ type: 'token', data: marker });
    const creator = await victim.application({
      type: 'public',
      permissions: ['token-intent:create'],
    });
    const intent = await victim.send('POST', '/token-intents', {
      key: creator,
      body: { type: 'token', data: marker },
    });
    assert.equal(intent.status, 201, intent.text);
    const keys = [
      await intruder.application({ permissions: ['proxy:invoke'] }),
      await intruder.application({ permissions: ['token:use'] }),
      await intruder.application({ permissions: ['token:create'] }),
      undefined,
    ];
    destination.behave(echo);
    const before = destination.requests.length;
    const call = (key: string | undefined, proxyKey: string, { path = '', headers, body }: Given) =>
      intruder.vault.send('POST', `/proxy${path}`, {
        key,
        ...(body !== undefined && { body }),
        headers: { 'svc-proxy-key': proxyKey, 'svc-trace-id': 'same', ...headers },
      });
    for (const key of keys) {
      for (const [place, at] of Object.entries(places)) {
        for (const id of [token.id, intent.body.id, proxy.id]) {
          assertAlike(
            await call(key, own.key, at(id)),
            id,
            await call(key, own.key, at(missing)),
            missing,
          );
          assert.equal(destination.requests.length, before, `${place} of ${id}`);
        }
      }
      const unknown = newProxyKey(pooledRandom());
      const body = { value: '{{ config: owner }}' };
      const foreign = await call(key, proxy.key, { body });
      // Without a key of the API, the key of the proxy is what makes it known.
      if (key) assertAlike(foreign, proxy.key, await call(key, unknown, { body }), unknown);
      else assert.equal(foreign.status, 401);
      const atHost = await intruder.vault.send('GET', '/', { key, headers: { host } });
      assert.ok(atHost.status >= 400, atHost.text);
      assert.ok(!atHost.text.includes(marker));
    }
    assert.equal(destination.requests.length, before);
    await assertUntouched(victim);
  });
});

function assertAlike(one: Received, id: string, other: Received, otherId: string): void {
  assert.ok(one.status >= 400, one.text);
  assert.equal(one.status, other.status, `${one.text}\n${other.text}`);
  assert.equal(one.text.replaceAll(id, '<id>'), other.text.replaceAll(otherId, '<id>'));
  assert.ok(!one.text.includes(marker), one.text);
}

/** Nothing of the victim was used, and its log speaks of nobody else. */
async function assertUntouched(victim: TestTenant): Promise<void> {
  const { body } = await victim.send('GET', '/logs?size=100', { key: victim.managementKey });
  const used = body.data.filter(({ operation }: { operation: string }) => operation === 'use');
  assert.deepEqual(
    used.filter(({ entity_type }: { entity_type: string }) => entity_type !== 'application_key'),
    [],
  );
}
