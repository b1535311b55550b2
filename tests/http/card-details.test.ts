/** GET /enrichments/card-details: brands that are built in, and the rest from the operator's table. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { withoutUuids } from '../support/scan.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

const path = '/enrichments/card-details';
const table = join(temporaryDirectory({ after }), 'bins.csv');

const details = (tenant: TestTenant, bin: string, key = tenant.key) =>
  tenant.send('GET', `${path}?bin=${bin}`, { key });

const nobody = { country: null, name: null };
const unknown = { funding: null, segment: null, issuer: nobody, bin_range: [], additional: [] };

onBothEngines(`GET ${path}`, (engine) => {
  const tenants = tenantsOf(engine);

  test('200: the brand is known without a table, and what is not known is null', async () => {
    const tenant = await tenants();
    for (const [bin, brand] of [
      ['424242', 'visa'],
      ['42424242', 'visa'],
      ['555555', 'mastercard'],
      ['3782822', 'american-express'],
      ['999999', null],
    ] as const) {
      const answer = await details(tenant, bin);
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body, { brand, ...unknown }, bin);
    }
  });

  test('200: any key may ask, and the log says so without the BIN', async () => {
    const tenant = await tenants();
    const key = await tenant.application({ type: 'public', permissions: ['token:create'] });
    assert.equal((await details(tenant, '424242', key)).status, 200);
    assert.equal((await details(tenant, '424242', tenant.managementKey)).status, 200);
    assert.deepEqual(await tenant.logged('card'), ['read', 'read']);
    const entries = (await tenant.rows('logs')).map(({ hash: _hash, ...said }) => said);
    assert.equal(withoutUuids(JSON.stringify(entries)).includes('424242'), false);
  });

  test('400: a BIN of other than 6 to 8 digits, and no answer quotes what was sent', async () => {
    const tenant = await tenants();
    for (const query of ['', '?bin=', '?bin=42424', `?bin=${visa.number}`, '?bin=4242%2042']) {
      const answer = await tenant.send('GET', path + query);
      assert.equal(answer.status, 400, query);
      assert.deepEqual(Object.keys(answer.body.errors), ['bin'], query);
      assert.equal(answer.text.includes('4242'), false);
    }
    const misspelt = await tenant.send('GET', `${path}?bin=424242&brand=visa`);
    assert.deepEqual(Object.keys(misspelt.body.errors), ['brand']);
    assert.deepEqual(await tenant.logged('card'), []);
  });

  test('401: without a key', async () => {
    const tenant = await tenants();
    assert.equal((await details(tenant, '424242', 'key_none')).status, 401);
  });
});

onBothEngines(`GET ${path} with a table`, (engine) => {
  before(() =>
    writeFile(
      table,
      [
        'bin_min,bin_max,brand,funding,segment,issuer_name,issuer_country',
        '400000,499999,,,,,',
        '424242,424243,visa,debit,consumer,"Example Bank, N.A.",US',
        '424242,424243,proprietary,debit,consumer,"Example Bank, N.A.",US',
        '42424210,42424219,visa,prepaid,business,Other Bank,CA',
      ].join('\r\n'),
    ),
  );
  const tenants = tenantsOf(engine, { environment: { STRONGROOM_BIN_TABLE: table } });

  const example = {
    brand: 'visa',
    funding: 'debit',
    segment: 'consumer',
    issuer: { country: 'US', name: 'Example Bank, N.A.' },
    bin_range: [{ bin_min: '424242', bin_max: '424243' }],
  };

  test('200: issuer, funding and segment of the range, and other brands as additional', async () => {
    const tenant = await tenants();
    const additional = [{ ...example, brand: 'proprietary' }];
    assert.deepEqual((await details(tenant, '424242')).body, { ...example, additional });
    assert.deepEqual((await details(tenant, '42424399')).body, { ...example, additional });
  });

  test('200: the narrowest range answers, and a row without a brand has the built-in one', async () => {
    const tenant = await tenants();
    const narrow = (await details(tenant, '42424215')).body;
    assert.deepEqual(
      [narrow.brand, narrow.funding, narrow.issuer.name],
      ['visa', 'prepaid', 'Other Bank'],
    );
    assert.deepEqual(narrow.additional, [{ ...example, brand: 'proprietary' }]);
    assert.deepEqual((await details(tenant, '499999')).body, {
      brand: 'visa',
      ...unknown,
      bin_range: [{ bin_min: '400000', bin_max: '499999' }],
    });
    assert.deepEqual((await details(tenant, '555555')).body, { brand: 'mastercard', ...unknown });
  });
});
