/** `POST /tokens/bulk`: two lines of one body with one id are a mistake, however far apart they are. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { linesAtOnceMax } from '../../src/http/protocol/lines.ts';
import { onBothEngines } from '../support/engines.ts';
import { bulk } from '../support/lines.ts';
import { beginRequest } from '../support/raw-request.ts';
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

  test('is none that another request made meanwhile, though it has the same trace id', async () => {
    const tenant = await tenants();
    const traced = { 'svc-trace-id': 'the-same', 'content-type': 'application/x-ndjson' };
    const { socket, answer } = await beginRequest({
      url: tenant.vault.url,
      method: 'POST',
      path: '/tokens/bulk',
      headers: { ...traced, 'svc-api-key': tenant.key, connection: 'close' },
    });
    const send = (line: object) => {
      const text = `${JSON.stringify(line)}\n`;
      socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
    };
    send(token('begun', { id: 'begun' }));
    await once(socket, 'data');
    const other = await tenant.send('POST', '/tokens/bulk', {
      body: `${JSON.stringify(first)}\n`,
      headers: traced,
    });
    assert.match(other.text, /"status":201/);
    send(first);
    socket.write('0\r\n\r\n');
    assert.match(await answer, /"line":2,"status":200/);
    const marks = (await tenant.rows('logs'))
      .filter(({ operation, entity_type }) => operation === 'create' && entity_type === 'token')
      .map(({ trace_id }) => /^the-same ([\w-]{12})$/.exec(trace_id ?? '')?.[1]);
    assert.equal(new Set(marks).size, 2);
    assert.equal(marks.includes(undefined), false);
  });

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
