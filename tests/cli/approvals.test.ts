/** On the command line, a person lists, reads, approves, and denies what waits, with a key of the vault. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { leaveApproval } from '../support/approvals.ts';
import { answer } from '../support/destination.ts';
import { beginRequest, newAgent } from '../support/egress.ts';
import { engineOf } from '../support/engines.ts';
import { untilSo } from '../support/poll.ts';
import { runCommand } from '../support/process.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const { destination, environment } = await startCalled({ after });

test('strongroom approvals shows what waits, without a value, and decides about it', async (t) => {
  const vault = await startVault(t, engineOf('sqlite'), {
    environment: { ...environment, STRONGROOM_EGRESS_ADDRESS: '127.0.0.1:0' },
  });
  const tenant = await newTenant(vault);
  const run = (...words: string[]) =>
    runCommand(['approvals', ...words], {
      STRONGROOM_URL: vault.url,
      STRONGROOM_KEY: tenant.managementKey,
    });
  await tenant.token({ id: 'card', type: 'card', data: { number: '4242424242424242' } });
  destination.behave(answer(200, [], 'ok'));
  const authority = `localhost:${destination.port}`;
  const agent = await newAgent(tenant, {
    host: 'localhost',
    port: destination.port,
    tokens: ['card'],
    places: ['json:card.number'],
    approval: 'always',
  });
  const { response } = await beginRequest(t, agent, { authority });
  await untilSo(
    async () => (await tenant.rows('approvals')).length > 0,
    () => 'nothing waits',
  );
  const [row] = await tenant.rows('approvals');
  const list = await run('list', '--status', 'waiting');
  assert.equal(list.code, 0, list.stderr);
  assert.match(list.stdout, new RegExp(`${row?.approval_id}.*waiting.*shopping agent.*POST`));
  const one = await run('get', row?.approval_id ?? '', '--json');
  assert.deepEqual(JSON.parse(one.stdout).tokens, [
    { id: 'card', property: 'number', place: 'json:card.number' },
  ]);
  assert.ok(!`${list.stdout}${one.stdout}`.includes('4242'));
  const approved = await run('approve', row?.approval_id ?? '', '--scope', 'request');
  assert.equal(approved.code, 0, approved.stderr);
  assert.equal((await response)?.status, 200);
  const left = await leaveApproval(tenant);
  const denied = await run('deny', left.approval_id, '--json');
  assert.equal(JSON.parse(denied.stdout).status, 'denied');
  assert.notEqual((await run('deny', left.approval_id)).code, 0, 'once');
});
