/** `POST /tokens/bulk`: two lines of one body with one id are a mistake, however far apart they are. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linesAtOnceMax } from '../../src/http/protocol/lines.ts';
import { onBothEngines } from '../support/engines.ts';
import { bulk } from '../support/lines.ts';
import { tenantsOf } from '../support/tenant.ts';

const token = (data: string, more: object = {}) => ({ type: 'token', data, ...more });

onBothEngines('POST /tokens/bulk, a line whose id an earlier line of the body has', (engine) => {
  const tenants = tenantsOf(engine);

  async function assertRepeated(lines: readonly unknown[]): Promise<void> {
    const tenant = await tenants();
    const answered = await bulk(tenant, lines);
    const repeated = answered.filter(({ status }) => status !== 201);
    assert.deepEqual(
      repeated.map(({ line, status }) => [line, status]),
      [[lines.length, 400]],
    );
    assert.deepEqual(Object.keys(repeated[0].problem.errors), ['id']);
    assert.equal((await tenant.counts())['tokens'], lines.length - 1);
    const read = await tenant.send('GET', '/tokens/line-1');
    assert.equal(read.body.data, 'once');
  }

  const first = token('once', { id: 'line-1' });
  const others = { 'the same': first, another: { ...first, data: 'twice' } };

  for (const [what, again] of Object.entries(others)) {
    test(`is 400 with ${what} value`, () => assertRepeated([first, again]));

    test(`is 400 with ${what} value, also when so many lines are between that it is forgotten`, () =>
      assertRepeated([
        first,
        ...Array.from({ length: 3 * linesAtOnceMax }, (_, at) => token(`between ${at}`)),
        again,
      ]));
  }
});
