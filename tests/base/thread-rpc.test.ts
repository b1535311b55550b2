/** The line between two threads: calls are answered, errors included, and its end fails what waits. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { MessageChannel, MessagePort } from 'node:worker_threads';
import { invalid, VaultError } from '../../src/base/errors.ts';
import { createThreadRpc } from '../../src/base/thread-rpc.ts';
import type { ProcessCalls } from '../../src/runtime/messages.ts';
import { openProcess } from '../../src/runtime/process.ts';
import { createSharedCalls } from '../../src/runtime/shared-calls.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { configFor, recorder } from '../support/vault.ts';

interface Calls {
  double(number: number): number;
  fail(error: 'vault' | 'attributes' | 'other'): Promise<never>;
  wait(): Promise<void>;
  port(): MessagePort;
  uncloneable(): () => void;
}

const failures = {
  vault: () =>
    new VaultError('too_many_requests', {
      public: 'shown',
      internal: 'for the operator',
      headers: { 'retry-after': '7' },
      altered: { entity: 'token', id: 'one' },
    }),
  attributes: () => invalid('data.number', 'must be a number'),
  other: () => Object.assign(new Error('EADDRINUSE: in use'), { name: 'SystemError' }),
};

const factsOf = ({ code, message, public: shown, headers, errors, altered }: VaultError) => ({
  code,
  message,
  shown,
  headers,
  errors,
  altered,
});

function lineOf(t: TestContext) {
  const { port1, port2 } = new MessageChannel();
  t.after(() => port1.close());
  createThreadRpc<Record<never, never>, Calls>(port2, {
    double: (number) => 2 * number,
    fail: async (error) => {
      throw failures[error]();
    },
    wait: () => new Promise(() => undefined),
    port: () => new MessageChannel().port1,
    uncloneable: () => () => undefined,
  });
  return createThreadRpc<Calls, Record<never, never>>(port1, {});
}

test('calls have their own responses, and a port moves to the other side', async (t) => {
  const line = lineOf(t);
  const doubled = await Promise.all([1, 2, 3].map((number) => line.call('double', number)));
  assert.deepEqual(doubled, [2, 4, 6]);
  const port = await line.call('port', undefined);
  assert.ok(port instanceof MessagePort);
  port.close();
});

test('an error crosses with all that a response or the operator needs of it', async (t) => {
  const line = lineOf(t);
  for (const name of ['vault', 'attributes'] as const) {
    const expected = failures[name]();
    const error = await line.call('fail', name).catch((caught: unknown) => caught);
    assert.ok(error instanceof VaultError);
    assert.deepEqual(factsOf(error), factsOf(expected));
  }
  await assert.rejects(line.call('fail', 'other'), { name: 'SystemError', message: /EADDRINUSE/ });
});

test('an output that cannot be cloned fails its call alone, and the other side goes on', async (t) => {
  const line = lineOf(t);
  await assert.rejects(line.call('uncloneable', undefined), { name: 'DataCloneError' });
  assert.equal(await line.call('double', 2), 4);
});

test('with the end of the other side, what waits fails, and so does what comes later', async (t) => {
  const line = lineOf(t);
  const waiting = line.call('wait', undefined);
  line.end(new Error('it ended'));
  await assert.rejects(waiting, /it ended/);
  await assert.rejects(line.call('double', 1), /it ended/);
});

onBothEngines('a thread that ends while it looks a key up', (engine: Engine) => {
  test('gives its turn to the next, and other addresses never waited', async (t) => {
    const environment = { STRONGROOM_RATE_LIMITS: '' };
    const config = configFor(await engine.place(t), environment);
    const vault = await openProcess(config, { log: recorder([]) });
    t.after(() => vault.close());
    const address = '192.0.2.1';
    for (let failed = 0; failed < 60; failed += 1) await vault.shared.attempts.count(address);
    const serve = createSharedCalls(vault);
    const end = Promise.withResolvers<void>();
    const dying: ProcessCalls = serve(end.promise);
    const other: ProcessCalls = serve(new Promise(() => undefined));
    await dying.beginLookUp(address);
    let hasTurn = false;
    const next = other.beginLookUp(address).then((lookUp) => {
      hasTurn = true;
      return lookUp;
    });
    other.endLookUp(await other.beginLookUp('198.51.100.7'));
    assert.equal(hasTurn, false);
    end.resolve();
    other.endLookUp(await next);
    await assert.rejects(other.countFailedAttempt(address), { code: 'too_many_requests' });
  });
});
