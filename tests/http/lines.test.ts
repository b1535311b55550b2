/** Lines of a body: the same however it is cut into chunks, and no more of them held than are being worked on. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createAuthentication } from '../../src/access/authenticate.ts';
import { createOpenEncrypted } from '../../src/access/client-keys/open-encrypted.ts';
import { tokenReaders } from '../../src/api/token-shapes.ts';
import { serializeLine, tokens } from '../../src/api/tokens.ts';
import { type BodyLine, linesAtOnceMax, linesOf } from '../../src/http/protocol/lines.ts';
import { linesMediaType, type StreamRoute } from '../../src/http/protocol/route.ts';
import { onBothEngines } from '../support/engines.ts';
import { linesSent } from '../support/lines.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const origin = { address: '127.0.0.1', traceId: 'trace', dialect: 'SVC' };

async function* chunksOf(bytes: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  let start = 0;
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    const end = Math.min(cut, bytes.length);
    yield bytes.subarray(start, end);
    start = end;
  }
  yield bytes.subarray(start);
}

async function gather(lines: AsyncIterable<readonly BodyLine[]>): Promise<(string | undefined)[]> {
  const all: (string | undefined)[] = [];
  for await (const some of lines) all.push(...some.map((line) => line?.toString('utf8')));
  return all;
}

test('lines are the same wherever the body is cut', async () => {
  const text = fc.array(fc.constantFrom('a', 'é', '\n', '{}', '\r', ' '), { maxLength: 40 });
  const cuts = fc.array(fc.nat(60), { maxLength: 12 });
  const check = fc.asyncProperty(text, cuts, async (parts, places) => {
    const body = parts.join('');
    const expected = body.split('\n');
    if (expected.at(-1) === '') expected.pop();
    const lines = linesOf(chunksOf(Buffer.from(body), places), 1000);
    assert.deepEqual(await gather(lines), expected);
  });
  await fc.assert(check);
});

test('a line of the most bytes is whole, of one more is none, wherever it is cut, and the next is whole', async () => {
  const body = Buffer.from('12345\n123456\n12345\n1234567890123\n\n12345');
  const expected = ['12345', undefined, '12345', undefined, '', '12345'];
  for (let cut = 0; cut <= body.length; cut += 1) {
    assert.deepEqual(await gather(linesOf(chunksOf(body, [cut]), 5)), expected);
  }
});

test('a chunk of many lines is worked on in parts', async () => {
  const body = Buffer.from('x\n'.repeat(2 * linesAtOnceMax + 1));
  const sizes: number[] = [];
  for await (const some of linesOf(chunksOf(body, []), 5)) sizes.push(some.length);
  const third = Math.ceil((2 * linesAtOnceMax + 1) / 3);
  assert.deepEqual(sizes, [third, third, third - 1]);
});

onBothEngines('POST /tokens/bulk', (engine) => {
  test('takes no more of its body than it has answered and two chunks, however long that is', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const { store, tenants, random } = vault.running.vault;
    const { clock } = vault;
    const authenticate = createAuthentication({
      store,
      tenants,
      clock,
      onFailure: async () => undefined,
    });
    const tools = {
      store,
      tenants,
      keyMaxAgeMs: Number.POSITIVE_INFINITY,
      clock,
      random,
      openEncrypted: createOpenEncrypted({ store, clock }),
      onMaskFailure: () => undefined,
      ...tokenReaders,
      serializeLine,
    };
    const bulk = tokens.operations(tools).find((one) => one.path === '/tokens/bulk') as
      | StreamRoute
      | undefined;
    assert.equal(bulk?.mediaType, linesMediaType);
    let taken = 0;
    let ended = false;
    async function* endless(): AsyncGenerator<Buffer> {
      try {
        for (; ; taken += 1) {
          yield Buffer.from(String(linesSent([{ type: 'token', data: taken }]).body));
        }
      } finally {
        ended = true;
      }
    }
    const answers = bulk
      .stream({
        caller: async () => authenticate(tenant.key, origin),
        key: tenant.key,
        rowsOfPart: (rows: number) => rows,
        count: async (granted) => ({ granted, refusal: undefined }),
        query: undefined as never,
        body: endless(),
      })
      [Symbol.asyncIterator]();
    for (let answered = 1; answered <= 20; answered += 1) {
      const { value } = await answers.next();
      assert.equal(value?.length, 1);
      assert.ok(taken <= answered + 2, `${taken} chunks for ${answered} answers`);
    }
    await answers.return?.();
    assert.ok(((await tenant.counts())['tokens'] ?? 0) <= 22);
    assert.equal(ended, true);
  });
});
