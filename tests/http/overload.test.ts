/** More requests than the storage can take: 503 at once for some, and the others are done. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitingMax } from '../../src/store/queue.ts';
import { onBothEngines } from '../support/engines.ts';
import { holdWrites } from '../support/locks.ts';
import { type Received, startVault } from '../support/vault.ts';

onBothEngines('an overloaded vault', (engine) => {
  test('503 overloaded with Retry-After; nothing was done, and the next request succeeds', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const data = 'x'.repeat(1_000_000);
    const create = (n: number, value: string) =>
      vault.send('POST', '/tokens', { key, body: { id: `t-${n}`, type: 'token', data: value } });
    assert.equal((await create(0, 'first')).status, 201);

    const release = await holdWrites(t, engine, vault.place);
    const refused = Promise.withResolvers<Received>();
    const count = Math.ceil(waitingMax.bytes / data.length) + 20;
    const requests = Array.from({ length: count }, async (_, n) => {
      const answer = await create(n + 1, data);
      if (answer.status !== 201) refused.resolve(answer);
      return answer;
    });
    const { status, headers, body } = await refused.promise;
    await release();
    assert.equal(status, 503);
    assert.equal(headers.get('retry-after'), '1');
    assert.equal(headers.get('content-type'), 'application/problem+json; charset=utf-8');
    assert.equal(body.type, 'urn:strongroom:problem:overloaded');
    assert.match(body.detail, /Nothing was done; try again\./);

    const answers = await Promise.all(requests);
    const done = answers.filter((answer) => answer.status === 201).length;
    assert.ok(answers.every((answer) => answer.status === 201 || answer.status === 503));
    const [row] = await engine.run(vault.place, 'select count(*) as n from tokens');
    assert.equal(Number(row?.['n']), done + 1);
    assert.equal((await create(count + 1, 'last')).status, 201);
  });
});
