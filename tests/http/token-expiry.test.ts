/** expires_at: every form it may be written in, and what it does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { tenantsOf } from '../support/tenant.ts';
import { createStillClock } from '../support/vault.ts';

/** Far enough ahead whenever the tests run. */
const year = new Date().getUTCFullYear() + 4;

/** As clients write it, and as it is answered: ISO 8601 with the offset they gave. */
const forms = [
  [`8/26/${year} 7:23:57 PM -07:00`, `${year}-08-26T19:23:57-07:00`],
  [`12/1/${year} 12:00:00 AM +05:30`, `${year}-12-01T00:00:00+05:30`],
  [`8/26/${year} 7:23:57 PM`, `${year}-08-26T19:23:57+00:00`],
  [`9/27/${year}`, `${year}-09-27T00:00:00+00:00`],
  [`${year}-08-26`, `${year}-08-26T00:00:00+00:00`],
  [`${year}-08-26T19:23:57Z`, `${year}-08-26T19:23:57+00:00`],
  [`${year}-08-26T19:23:57`, `${year}-08-26T19:23:57+00:00`],
  [`${year}-08-26T19:23:57-07:00`, `${year}-08-26T19:23:57-07:00`],
  [`${year}-08-26T19:23:57.123+14:00`, `${year}-08-26T19:23:57.123+14:00`],
  [`${year}-08-26T19:23:57.1234567-00:30`, `${year}-08-26T19:23:57.123-00:30`],
] as const;

onBothEngines('expires_at', (engine) => {
  const tenants = tenantsOf(engine, { clock: createStillClock() });

  test('every form is taken and its offset is echoed, at creation, update and reading', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'patched', type: 'token', data: 1 });
    for (const [written, answered] of forms) {
      const { body } = await tenant.token({ type: 'token', data: 1, expires_at: written });
      assert.equal(body.expires_at, answered, written);
      const patch = { body: { expires_at: written } };
      const patched = await tenant.send('PATCH', '/tokens/patched', patch);
      assert.equal(patched.body.expires_at, answered, written);
      for (const id of [body.id, 'patched']) {
        assert.equal((await tenant.send('GET', `/tokens/${id}`)).body.expires_at, answered);
      }
    }
  });

  test('null in an update clears it, an update without it leaves it', async () => {
    const tenant = await tenants();
    const expires_at = `${year}-08-26T19:23:57-07:00`;
    await tenant.token({ id: 'own', type: 'token', data: 1, expires_at });
    const kept = await tenant.send('PATCH', '/tokens/own', { body: { data: 2 } });
    assert.equal(kept.body.expires_at, expires_at);
    const cleared = await tenant.send('PATCH', '/tokens/own', { body: { expires_at: null } });
    assert.equal('expires_at' in cleared.body, false);
    const [row] = await tenant.rows('tokens');
    assert.deepEqual([row?.expires_at, row?.expires_offset], [null, null]);
  });

  test('from its expiry on a token is gone for every reader, to the millisecond', async () => {
    const tenant = await tenants();
    const { clock } = tenant.vault;
    const at = clock.now() + 3_600_000;
    await tenant.token({
      id: 'own',
      type: 'token',
      data: 1,
      deduplicate_token: true,
      expires_at: new Date(at).toISOString(),
    });
    clock.advance(at - clock.now() - 1);
    assert.equal((await tenant.send('GET', '/tokens/own')).status, 200);
    clock.advance(1);
    const body = { expires_at: `${year}-01-01` };
    assert.equal((await tenant.send('GET', '/tokens/own')).status, 404);
    assert.equal((await tenant.send('PATCH', '/tokens/own', { body })).status, 404);
    assert.equal((await tenant.send('DELETE', '/tokens/own')).status, 404);
    const equal = await tenant.token({ type: 'token', data: 1, deduplicate_token: true });
    assert.deepEqual(equal.body._extras, { deduplicated: false });
  });
});
