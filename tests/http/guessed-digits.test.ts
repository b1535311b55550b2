/** Creates with a public key find no digits that a mask hides. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { tenantsOf } from '../support/tenant.ts';

onBothEngines('guessing digits that a mask hides', (engine) => {
  const newTenant = tenantsOf(engine);

  test('from the 21st create of equal visible digits on nothing says whether the value is known', async () => {
    const tenant = await newTenant();
    const key = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const data = { number: '4242424242424242', expiration_month: 12, expiration_year: 2099 };
    const body = { type: 'card', data, deduplicate_token: true };
    const create = (by: string) => tenant.send('POST', '/tokens', { key: by, body });
    const ids = new Set<string>();
    for (let n = 0; n < 20; n++) {
      const made = await create(key);
      assert.equal(made.status, 201, made.text);
      ids.add(made.body.id);
    }
    assert.equal(ids.size, 1, 'equal values are deduplicated');
    for (let n = 0; n < 3; n++) {
      const { status, body: made } = await create(key);
      assert.equal(status, 201);
      assert.equal(made.fingerprint, undefined);
      assert.equal(made._extras, undefined);
      assert.ok(!ids.has(made.id));
    }
    const alerts = (await tenant.logged('token')).filter((one) => one.includes('guess'));
    assert.equal(alerts.length, 1);
    assert.ok(ids.has((await create(tenant.key)).body.id), 'private keys are not counted');
  });
});
