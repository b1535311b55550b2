/** Large responses of destinations, whose masks run in threads: what is appended changes nothing else. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
import { tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });

const json = ['Content-Type', 'application/json'];

onBothEngines('A large response', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('is masked and appended to, and every other byte is the one that was sent', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, {
      destination_url: url,
      response_transforms: [
        { type: 'mask', matcher: 'regex', expression: '"pan":\\s*"(.*?)"', replacement: '*' },
        { type: 'append_json', options: { value: 'yes', location: '$.seen' } },
      ],
    });
    const sent = (number: string) =>
      `{ "pan": "${number}", "large": 12345678901234567890,\n "a": 1.0, "a": "${'é'.repeat(300_000)}"`;
    destination.behave(answer(200, json, `${sent('4242424242424242')} }`));
    const received = await call('GET', '/');
    assert.equal(received.text, `${sent('*'.repeat(16))},"seen":"yes" }`);
  });

  test('that takes too much work to mask is refused, and shows nothing', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, {
      destination_url: url,
      response_transforms: [
        { type: 'mask', matcher: 'regex', expression: '((((.*)*)*)*)[xy]', replacement: '*' },
      ],
    });
    destination.behave(answer(200, ['Content-Type', 'text/plain'], 'a'.repeat(1_000_000)));
    const received = await call('GET', '/');
    assert.equal(received.status, 502);
    assert.match(received.text, /needs more than 32000000 units of work/);
    assert.doesNotMatch(received.text, /aa/);
  });
});
