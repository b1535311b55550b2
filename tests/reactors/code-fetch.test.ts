/** How much of the vault a host can use up that the code of a reactor calls. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createForward } from '../../src/outbound/forward.ts';
import { fetchForCode } from '../../src/reactors/runs/fetch.ts';
import type { Tenant } from '../../src/rules/tenant.ts';
import { answer, startDestination } from '../support/destination.ts';

const destination = await startDestination({ after });
const { port, authority } = destination;
const allow = new Set([`localhost:${port}`]);
const forward = createForward({
  vaultName: 'strongroom-0000000000000000',
  allow,
  authorities: [authority.cert],
});
const tenant = { id: 'tenant', settings: { proxy_destinations: '' } } as Tenant;
const input = { url: `https://localhost:${port}/`, method: 'GET', headers: [] };
const { signal } = new AbortController();

const mebibytes = (count: number) => 'x'.repeat(count * 1024 * 1024);

test('a response that never ends is left when its time is over, however it trickles', async () => {
  destination.behave(async ({ response }) => {
    for (let part = 0; part < 100_000 && !response.destroyed; part++) {
      await new Promise<void>((resolve) => {
        response.write('x', () => resolve());
      });
    }
    response.end();
  });
  const fetching = { tenant, allowedHosts: null, trace: undefined, held: { bytes: 0 } };
  await assert.rejects(
    fetchForCode(forward, { ...fetching, timeoutMs: 200 }, { input, signal }),
    /longer than the time limit/,
  );
});

test('responses of one call have 8 MiB at the same time, and one after another more', async () => {
  const held = { bytes: 0 };
  const fetching = { tenant, allowedHosts: null, trace: undefined, held };
  destination.behave(answer(200, [], mebibytes(4)));
  for (let call = 0; call < 3; call++) await fetchForCode(forward, fetching, { input, signal });
  // None of them ends before one is refused.
  const waiting: (() => void)[] = [];
  destination.behave(({ response }) => {
    response.write(mebibytes(3));
    waiting.push(() => response.end('x'));
  });
  const endAll = () => {
    for (const end of waiting) end();
  };
  const three = Array.from({ length: 3 }, () => fetchForCode(forward, fetching, { input, signal }));
  for (const one of three) one.catch(endAll);
  const outcomes = await Promise.allSettled(three);
  const refused = outcomes.filter(({ status }) => status === 'rejected');
  assert.equal(refused.length, 1);
  assert.match(String(refused[0]?.status === 'rejected' && refused[0].reason), /at the same time/);
  assert.equal(held.bytes, 0);
});
