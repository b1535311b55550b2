/** Calls of reactors that are repeated under one idempotency key, as clients do by themselves after a 500. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { createReactor, invoker } from '../support/reactors.ts';
import { tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });
const errors = "require('@basis-theory/basis-theory-reactor-formulas-sdk-js')";
const posting = "await fetch(args.url, { method: 'POST' });";

const programs: readonly (readonly [name: string, body: string, statuses: readonly number[]])[] = [
  ['acts and then takes too long', `${posting} for (;;) {}`, [500, 409]],
  ['acts and then fails', `${posting} null.x`, [500, 409]],
  ['acts, and its tokens are refused', `${posting} return { tokenize: 'x' }`, [403, 409]],
  ['acts and answers', `${posting} return { raw: 1 }`, [200, 200]],
  ['acts and refuses', `${posting} throw new (${errors}.BadRequestError)('no')`, [400, 400]],
  ['only fails', 'null.x', [500, 500]],
];

onBothEngines('a repeated call of a reactor', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  for (const [name, body, statuses] of programs) {
    test(`whose code ${name}: ${statuses.join(', then ')}`, async () => {
      const tenant = await newTenant();
      const code = `module.exports = async ({ args }) => { ${body} }`;
      const { id } = await createReactor(tenant, { code, runtime: { timeout: 2 } });
      const sent = {
        key: await invoker(tenant),
        body: { args: { url } },
        headers: { 'svc-idempotency-key': 'one' },
      };
      const before = destination.requests.length;
      const seen: number[] = [];
      for (let call = 0; call < 2; call++) {
        seen.push((await tenant.send('POST', `/reactors/${id}/react`, sent)).status);
      }
      assert.deepEqual(seen, statuses);
      if (seen[1] === 409) assert.equal(destination.requests.length, before + 1);
    });
  }
});
