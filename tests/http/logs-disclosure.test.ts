/** "Who saw it": entries of reads say how data was shown and through what, and can be searched by that. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import type { Received } from '../support/vault.ts';

const list = (tenant: TestTenant, query = ''): Promise<Received> =>
  tenant.send('GET', `/logs?${query}`, { key: tenant.managementKey });

interface Entry {
  readonly entity_type: string;
  readonly entity_id: string;
  readonly operation: string;
  readonly actor_id: string;
  readonly shown?: string;
  readonly through?: string;
}

const seen = ({ body }: Received): string[] =>
  body.data.map(({ entity_id, shown, through }: Entry) => `${entity_id} ${shown} ${through}`);

const rule = (transform: string, permissions = ['token:read', 'token:search']) => ({
  description: transform,
  priority: 1,
  container: '/',
  transform,
  permissions,
});

/** What everybody sees of the token through an operation, the newest entries first. */
async function shownTo(
  tenant: TestTenant,
  keys: readonly string[],
  send: (key: string) => Promise<Received>,
): Promise<string[]> {
  for (const key of keys) {
    const { status, text } = await send(key);
    assert.equal(status, 200, text);
    // Entries of one moment have no order that a test could know.
    tenant.vault.clock.advance(10);
  }
  return seen(await list(tenant, 'entity_id=card&size=3')).slice(0, keys.length);
}

onBothEngines('The log says how data was shown', (engine) => {
  const tenants = tenantsOf(engine);

  /** A tenant with one card, and keys that see it revealed, masked and redacted. */
  async function viewers() {
    const tenant = await tenants();
    await tenant.token({
      id: 'card',
      type: 'card',
      data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2035 },
    });
    const transforms = ['redact', 'mask', 'reveal'];
    const keys: string[] = [];
    for (const one of transforms) keys.push(await tenant.holder(rule(one)));
    tenant.vault.clock.advance(1000);
    return { tenant, keys };
  }

  test('of a GET: revealed, masked, redacted', async () => {
    const { tenant, keys } = await viewers();
    const shown = await shownTo(tenant, keys, (key) => tenant.send('GET', '/tokens/card', { key }));
    assert.deepEqual(shown, ['card revealed get', 'card masked get', 'card redacted get']);
  });

  test('of a list, a search, an export and a detokenization', async () => {
    const { tenant, keys } = await viewers();
    const [, mask = '', reveal = ''] = keys;
    const both = [mask, reveal];
    const body = { query: 'type:card' };
    assert.deepEqual(
      await shownTo(tenant, both, (key) => tenant.send('GET', '/v2/tokens', { key })),
      ['card revealed list', 'card masked list'],
    );
    assert.deepEqual(
      await shownTo(tenant, both, (key) => tenant.send('POST', '/v2/tokens/search', { key, body })),
      ['card revealed search', 'card masked search'],
    );
    assert.deepEqual(
      await shownTo(tenant, both, (key) => tenant.send('GET', '/tokens/export', { key })),
      ['card revealed export', 'card masked export'],
    );
    const sent = { number: '{{ card | json: "$.number" }}' };
    assert.deepEqual(
      await shownTo(tenant, [reveal], (key) =>
        tenant.send('POST', '/detokenize', { key, body: sent }),
      ),
      ['card revealed detokenize'],
    );
  });

  test('of an update and of a creation that found the token: what the request had not brought', async () => {
    const { tenant } = await viewers();
    const { key } = tenant;
    const update = { key, body: { metadata: { order: '1' } } };
    assert.deepEqual(
      await shownTo(tenant, [key], () => tenant.send('PATCH', '/tokens/card', update)),
      ['card revealed update'],
    );
    const again = {
      type: 'card',
      data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2035 },
      deduplicate_token: true,
    };
    tenant.vault.clock.advance(10);
    const found = await tenant.send('POST', '/tokens', { key, body: again });
    assert.equal(found.body.id, 'card', found.text);
    assert.deepEqual(seen(await list(tenant, 'entity_id=card&size=1')), ['card revealed create']);
  });

  test('not of a creation whose data its own request brought, nor of entries that show none', async () => {
    const { tenant } = await viewers();
    const entries: Entry[] = (await list(tenant)).body.data;
    assert.ok(entries.length >= 5);
    assert.deepEqual(
      entries.filter((entry) => 'shown' in entry || 'through' in entry),
      [],
    );
  });

  test('of a stored response that shows a token again', async () => {
    const { tenant } = await viewers();
    const { key } = tenant;
    const headers = { 'svc-idempotency-key': 'once' };
    const sent = { key, headers, body: { data: '{{ card }}' } };
    const first = await tenant.send('POST', '/detokenize', sent);
    assert.equal(first.status, 200, first.text);
    tenant.vault.clock.advance(10);
    assert.equal((await tenant.send('POST', '/detokenize', sent)).text, first.text);
    assert.deepEqual(seen(await list(tenant, 'entity_id=card&size=2')), [
      'card revealed replay',
      'card revealed detokenize',
    ]);
  });

  test('and is searched by it: who has seen this token in plaintext', async () => {
    const { tenant, keys } = await viewers();
    const get = (key: string) => tenant.send('GET', '/tokens/card', { key });
    await shownTo(tenant, keys, get);
    await shownTo(tenant, keys.slice(1), (key) => tenant.send('GET', '/v2/tokens', { key }));
    const revealed = await list(tenant, 'entity_id=card&shown=revealed');
    assert.deepEqual(seen(revealed), ['card revealed list', 'card revealed get']);
    assert.equal(new Set(revealed.body.data.map((entry: Entry) => entry.actor_id)).size, 1);
    const got = await list(tenant, 'through=get');
    assert.deepEqual(
      seen(got).map((one) => one.split(' ')[1]),
      ['revealed', 'masked', 'redacted'],
    );
    assert.deepEqual(seen(await list(tenant, 'shown=masked&through=list')), ['card masked list']);
    assert.deepEqual(seen(await list(tenant, 'shown=redacted&through=list')), []);
  });

  test('400: a word that no entry has, and a cursor of another search', async () => {
    const { tenant, keys } = await viewers();
    await shownTo(tenant, keys, (key) => tenant.send('GET', '/tokens/card', { key }));
    for (const name of ['shown', 'through']) {
      const refused = await list(tenant, `${name}=4242424242424242`);
      assert.equal(refused.status, 400);
      assert.ok(name in refused.body.errors, refused.text);
      assert.equal(refused.text.includes('4242'), false);
    }
    const { next } = (await list(tenant, 'through=get&size=1')).body.pagination;
    const other = await list(tenant, `through=list&size=1&start=${encodeURIComponent(next)}`);
    assert.equal(other.status, 400);
  });
});
