/** Parts of an import that other threads work on: done once, in their order, and few of them at a time. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { createAuthentication } from '../../src/access/authenticate.ts';
import { createOpenEncrypted } from '../../src/access/client-keys/open-encrypted.ts';
import { tokenReaders } from '../../src/api/token-shapes.ts';
import { serializeLine } from '../../src/api/tokens.ts';
import { heldBytesMax } from '../../src/http/bulk/held-bytes.ts';
import { createImportShared } from '../../src/http/bulk/import-shared.ts';
import { importStream } from '../../src/http/bulk/import-stream.ts';
import type { ImportShared } from '../../src/http/bulk/siblings.ts';
import type { StreamPart } from '../../src/http/protocol/route.ts';
import { createSiblingThreads } from '../../src/runtime/siblings.ts';
import { unavailable } from '../../src/store/unavailable.ts';
import { beginImport, importLines } from '../../src/tokens/import.ts';
import { onBothEngines } from '../support/engines.ts';
import { linesSent } from '../support/lines.ts';
import { newTenant, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const origin = { address: '127.0.0.1', traceId: 'trace', dialect: 'SVC' };

/** More than is worth to be given away. */
const large = 'x'.repeat(5_000);

type Shares = (shared: ImportShared, end: () => void) => ImportShared;

/** An import whose other threads are on this one, behind real ports. */
async function importing(
  t: TestContext,
  tenant: TestTenant,
  shares: readonly Shares[],
  check: () => void = () => undefined,
) {
  const { store, tenants, random } = tenant.vault.running.vault;
  const { clock } = tenant.vault;
  const onFailure = async () => undefined;
  const authenticate = createAuthentication({ store, tenants, clock, onFailure });
  const openEncrypted = createOpenEncrypted({ store, clock });
  const tools = {
    store,
    tenants,
    clock,
    random,
    openEncrypted,
    onMaskFailure: () => undefined,
    ...tokenReaders,
    serializeLine,
  };
  const shared = createImportShared({ ...tools, authenticate });
  const own = createSiblingThreads(shared);
  const others = shares.map((share) => {
    const { port1, port2 } = new MessageChannel();
    t.after(() => port1.close());
    const other = createSiblingThreads(share(shared, () => port2.close()));
    return { other, added: Promise.all([own.add(port1), other.add(port2)]) };
  });
  for (const { added } of others) await added;
  const stream = (body: AsyncIterable<Buffer>) =>
    importStream(
      { ...tools, siblings: own },
      {
        caller: async () => {
          check();
          return authenticate(tenant.key, origin);
        },
        key: tenant.key,
        rowsOfPart: (rows: number) => rows,
        count: async (granted) => ({ granted, refusal: undefined }),
        query: {},
        body,
      },
    );
  return { stream, others, tools, authenticate };
}

async function* chunksOf(lines: readonly object[]): AsyncGenerator<Buffer> {
  for (const line of lines) yield Buffer.from(String(linesSent([line]).body));
}

const aTurn = () => new Promise((resolve) => setImmediate(resolve));

const tokens = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ id: `line-${at}`, type: 'token', data: large }));

function answersIn(part: StreamPart): readonly { line: number; status: number }[] {
  if (!(part instanceof Uint8Array)) return part as { line: number; status: number }[];
  return Buffer.from(part)
    .toString()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

async function responsesOf(parts: AsyncIterable<StreamPart>) {
  const answers: { line: number; status: number }[] = [];
  for await (const part of parts) answers.push(...answersIn(part));
  return answers;
}

onBothEngines('a part of an import that another thread has', (engine) => {
  const tenants = tenantsOf(engine);

  async function assertCreatedOnce(tenant: TestTenant, count: number) {
    assert.equal((await tenant.counts())['tokens'], count);
    const created = (await tenant.logged()).filter((one) => one === 'create');
    assert.equal(created.length, count);
  }

  test('is done here, once, when that thread ends before its turn', async (t) => {
    const tenant = await tenants();
    let begun = 0;
    const ends: Shares = (_, end) => async () => {
      begun += 1;
      end();
      return new Promise(() => undefined);
    };
    const { stream } = await importing(t, tenant, [ends]);
    const answers = await responsesOf(stream(chunksOf(tokens(10))));
    assert.deepEqual(
      answers.map(({ line, status }) => [line, status]),
      tokens(10).map((_, at) => [at + 1, 201]),
    );
    assert.ok(begun > 0);
    await assertCreatedOnce(tenant, 10);
  });

  test('is done once when that thread ends after its turn: 503 for its lines, which may be done', async (t) => {
    const tenant = await tenants();
    const done: number[] = [];
    const ends: Shares = (shared, end) => async (part, turn) => {
      await shared(part, turn);
      done.push(part.first);
      end();
      return new Promise(() => undefined);
    };
    const { stream } = await importing(t, tenant, [ends]);
    const answers = await responsesOf(stream(chunksOf(tokens(10))));
    assert.equal(done.length, 1);
    assert.deepEqual(
      answers.map(({ line, status }) => [line, status]),
      tokens(10).map((_, at) => [at + 1, done.includes(at + 1) ? 503 : 201]),
    );
    await assertCreatedOnce(tenant, 10);
  });

  test('is committed after the parts before it, and not at all after one that failed', async (t) => {
    const tenant = await tenants();
    const fails: Shares = (shared) => (part, turn) =>
      part.first < 5 ? shared(part, turn) : Promise.reject(new Error('a mistake of ours'));
    const { stream } = await importing(t, tenant, [fails, fails]);
    const answered: number[] = [];
    const parts = stream(chunksOf(tokens(20)));
    await assert.rejects(async () => {
      for await (const part of parts) answered.push(...answersIn(part).map(({ line }) => line));
    }, /a mistake of ours/);
    assert.deepEqual(
      answered,
      answered.map((_, at) => at + 1),
    );
    await assertCreatedOnce(tenant, answered.length);
  });

  test('is not committed when its key ends after its turn has come and before that thread asks', async (t) => {
    const tenant = await tenants();
    const first = Promise.withResolvers<void>();
    let hasEnded = false;
    const waits: Shares = (shared) => (part, turn) =>
      shared(part, async () => {
        await first.promise;
        for (let turns = 0; turns < 100; turns += 1) await aTurn();
        hasEnded = true;
        await turn();
      });
    const ended = () => {
      if (hasEnded) throw unavailable('the key has ended');
    };
    const { stream } = await importing(t, tenant, [waits], ended);
    const parts = stream(chunksOf(tokens(2)))[Symbol.asyncIterator]();
    await parts.next();
    first.resolve();
    await assert.rejects(async () => parts.next(), { code: 'unavailable' });
    await assertCreatedOnce(tenant, 1);
  });

  test('is finished before that thread stops, which takes no other then', async (t) => {
    const tenant = await tenants();
    let stopped: Promise<void> | undefined;
    let isStopped = false;
    const given: number[] = [];
    const stops: Shares = (shared) => async (part, turn) => {
      given.push(part.first);
      stopped ??= others[0]?.other.close().then(() => {
        isStopped = true;
      });
      const result = await shared(part, turn);
      assert.equal(isStopped, false);
      return result;
    };
    const { stream, others } = await importing(t, tenant, [stops]);
    const answers = await responsesOf(stream(chunksOf(tokens(10))));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]));
    await stopped;
    await assertCreatedOnce(tenant, 10);
    const before = given.length;
    const again = await responsesOf(stream(chunksOf(tokens(4))));
    assert.deepEqual(new Set(again.map(({ status }) => status)), new Set([200]));
    assert.equal(given.length, before);
  });

  test('holds few lines, however many threads there are and however slowly the response is read', async (t) => {
    const tenant = await tenants();
    const long = 900_000;
    let taken = 0;
    async function* endless(): AsyncGenerator<Buffer> {
      for (; ; taken += 1) {
        yield* chunksOf([{ type: 'token', data: 'x'.repeat(long) }]);
      }
    }
    const { stream } = await importing(
      t,
      tenant,
      Array(5).fill((shared: ImportShared) => shared),
    );
    const parts = stream(endless())[Symbol.asyncIterator]();
    for (let answered = 0; answered < 6; answered += 1) {
      await parts.next();
      for (let turns = 0; turns < 100; turns += 1) await aTurn();
      // The last answer, one line that is over, and one that is read before it is known that there is no room.
      const held = (taken - answered - 3) * long;
      assert.ok(held <= heldBytesMax, `${taken} lines for ${answered} answers`);
    }
    await parts.return?.(undefined);
  });

  test('is not answered while larger answers wait to be read', async (t) => {
    const tenant = await tenants();
    const equal = {
      type: 'token',
      fingerprint_expression: '{{ data | last4 }}',
      deduplicate_token: true,
    };
    await tenant.token({ ...equal, data: 'x'.repeat(900_000) });
    let answered = 0;
    const counts: Shares = (shared) => async (part, turn) => {
      const result = await shared(part, turn);
      answered += result.bytes.length;
      return result;
    };
    const { stream } = await importing(t, tenant, Array(5).fill(counts));
    const parts = stream(chunksOf(Array(20).fill({ ...equal, data: large })));
    await parts.next();
    while (answered < heldBytesMax / 2) await aTurn();
    for (let turns = 0; turns < 3_000; turns += 1) await aTurn();
    assert.ok(answered < heldBytesMax + 1_000_000, `${answered} bytes wait`);
    assert.equal((await responsesOf(parts)).length, 19);
    assert.ok(answered > 2 * heldBytesMax);
  });
});

onBothEngines('an import that cannot read what is stored', (engine) => {
  test('has a failure for each of its lines', async (t) => {
    const tenant = await newTenant(await startVault(t, engine));
    const { tools, authenticate } = await importing(t, tenant, []);
    const select = () => Promise.reject(unavailable('away'));
    const caller = await authenticate(tenant.key, origin);
    const lines = [1, 2].map((data) => ({ type: 'token', data, deduplicate_token: true }) as const);
    const store = { ...tools.store, select };
    const part = { caller, lines, turn: async () => caller };
    const results = await importLines({ ...tools, store }, beginImport(tools), part);
    assert.deepEqual(
      results.map((result) => 'failure' in result && result.failure.code),
      ['unavailable', 'unavailable'],
    );
  });
});
