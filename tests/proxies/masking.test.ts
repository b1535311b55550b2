/** Masking in threads: the same results, while everybody else is served, and no thread that stays. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import type { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { VaultError } from '../../src/base/errors.ts';
import { ExpressionError } from '../../src/expressions/evaluation/error.ts';
import { compilePattern, type Mask, maskAtOnce } from '../../src/proxies/transforms/mask.ts';
import { createMasking, maskingLimits } from '../../src/proxies/transforms/masking.ts';

/** Of the event loop. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

const maskOf = (expression: string): Mask => ({
  pattern: compilePattern(expression),
  replacement: '*',
});

/** One search that needs more work than is allowed, which takes long. */
const hostile = maskOf('((((.*)*)*)*)[xy]');
const hostileText = 'a'.repeat(1_000_000);
const digits = maskOf('([0-9]+)');
const one = { partition: 'one' };
const two = { partition: 'two' };

const isRefused = (error: unknown) =>
  error instanceof ExpressionError && /needs more than 32000000 units/.test(error.public);
const isOverloaded = (error: unknown) => error instanceof VaultError && error.code === 'overloaded';
const isFailure = (error: unknown) => error instanceof VaultError && error.code === 'internal';
const isStopping = (error: unknown) => error instanceof VaultError && error.code === 'unavailable';

/** Masks all in threads, unless the options say otherwise. Node announces a thread in the turn after its start. */
function masking(t: TestContext, options: Parameters<typeof createMasking>[0] = {}) {
  const threads: Worker[] = [];
  const running = new Set<Worker>();
  const onWorker = (worker: Worker) => {
    threads.push(worker);
    running.add(worker);
    worker.once('exit', () => running.delete(worker));
  };
  process.on('worker', onWorker);
  const { maskText, close } = createMasking({ workAtOnceMax: 0, ...options });
  t.after(async () => {
    await close();
    process.off('worker', onWorker);
    assert.equal(running.size, 0);
  });
  return { maskText, close, threads };
}

describe('a mask in a thread', () => {
  it('gives what it gives at once', async (t) => {
    const { maskText, threads } = masking(t);
    const patterns = ['a(b+)', '(a)(b)?', '(?i)("|é)', '(😀|€+)', '(.*)c', '()', '(?s)(.)'].map(
      maskOf,
    );
    const text = fc.string({
      unit: fc.constantFrom('a', 'b', 'c', '"', '€', '😀', '\n', '\ud800', '\u0000'),
      maxLength: 50,
    });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...patterns), text, async (mask, given) => {
        assert.equal(await maskText(given, mask, one), maskAtOnce(given, mask));
      }),
      { numRuns: 500 },
    );
    assert.equal(threads.length, 1);
  });

  it('has the memory for what its work allows, hidden as a whole or every other character', async (t) => {
    const { maskText } = masking(t);
    const whole = 'a'.repeat(500_000);
    assert.equal(await maskText(whole, maskOf('(?s)(.*)'), one), '*'.repeat(whole.length));
    const text = 'ab€'.repeat(200_000);
    assert.equal(await maskText(text, maskOf('(a).*'), one), '*b€'.repeat(200_000));
    const sparse = `${'-'.repeat(5_000_000)}"n":"1"`;
    assert.equal(await maskText(sparse, maskOf('"n":"(.*?)"'), one), sparse.replace('1', '*'));
  });

  it('is begun only for what takes more than a few milliseconds', async (t) => {
    const { maskText, threads } = masking(t, maskingLimits);
    assert.equal(await maskText('a1'.repeat(100), digits, one), 'a*'.repeat(100));
    const size = digits.pattern.programSize();
    const edge = Math.floor(maskingLimits.workAtOnceMax / size);
    assert.equal(threads.length, 0);
    const text = 'a'.repeat(edge + 1);
    assert.equal(await maskText(text, digits, one), text);
    assert.equal(threads.length, 1);
  });

  it('continues what proved expensive, however short the text is', async (t) => {
    const { maskText, threads } = masking(t, maskingLimits);
    const mask = maskOf('([^x]*x)|(.)');
    const text = 'a'.repeat(1_000);
    assert.equal(await maskText(text, mask, one), '*'.repeat(1_000));
    assert.equal(threads.length, 1);
  });

  it('lets others be served meanwhile', async (t) => {
    const { maskText } = masking(t, maskingLimits);
    const settled: string[] = [];
    const refused = assert.rejects(maskText(hostileText, hostile, one), isRefused).then(() => {
      settled.push('hostile');
    });
    for (let turns = 0; turns < 20; turns += 1) await turn();
    assert.equal(await maskText('a1', digits, two), 'a*');
    settled.push('other');
    await refused;
    assert.deepEqual(settled, ['other', 'hostile']);
  });
});

describe('tenants', () => {
  it('take turns, whatever one of them asks for', async (t) => {
    const { maskText } = masking(t, { threadsMax: 1 });
    const settled: string[] = [];
    const mask = (text: string, partition: string) =>
      maskText(text, digits, { partition }).then((masked) => settled.push(masked));
    const texts = Array.from({ length: 5 }, (_, index) => `${'abcde'[index]}1`);
    const all = texts.map((text) => mask(text, 'one'));
    await Promise.all([...all, mask('x1', 'two'), mask('y1', 'two'), mask('z1', 'three')]);
    assert.deepEqual(settled, ['a*', 'x*', 'z*', 'b*', 'y*', 'c*', 'd*', 'e*']);
  });

  it('have one thread each, and leave the other to others', async (t) => {
    const { maskText, threads } = masking(t);
    const refused = Array.from({ length: 3 }, () =>
      assert.rejects(maskText(hostileText, hostile, one), isRefused),
    );
    await turn();
    assert.equal(threads.length, 1);
    assert.equal(await maskText('a1', digits, two), 'a*');
    await Promise.all(refused);
    assert.equal(threads.length, 2);
  });
});

describe('what waits', () => {
  const room = { count: 1_000, characters: 1_000 };
  const bounds: readonly (readonly [string, Parameters<typeof createMasking>[0]])[] = [
    ['in number', { ofAll: { ...room, count: 2 }, ofPartition: room }],
    ['in characters', { ofAll: { ...room, characters: 4 }, ofPartition: room }],
    ['in number for each tenant', { ofAll: room, ofPartition: { ...room, count: 2 } }],
    ['in characters for each tenant', { ofAll: room, ofPartition: { ...room, characters: 4 } }],
  ];
  for (const [what, limits] of bounds) {
    it(`is bounded ${what}`, async (t) => {
      const { maskText } = masking(t, { threadsMax: 1, ...limits });
      const masked = [maskText('a1', digits, one), maskText('b1', digits, two)];
      masked.push(maskText('c1', digits, two));
      await assert.rejects(maskText('d1', digits, two), isOverloaded);
      if (limits?.ofPartition !== room) masked.push(maskText('e1', digits, one));
      else await assert.rejects(maskText('e1', digits, one), isOverloaded);
      assert.deepEqual((await Promise.all(masked)).slice(0, 3), ['a*', 'b*', 'c*']);
      assert.equal(await maskText('d1', digits, two), 'd*');
    });
  }

  it('leaves with its caller, and frees its room', async (t) => {
    const limits = { ...room, count: 1 };
    const { maskText } = masking(t, { threadsMax: 1, ofAll: limits, ofPartition: limits });
    const { signal, abort } = leaving();
    const first = maskText('a1', digits, one);
    const gone = maskText('b1', digits, { ...one, signal });
    await assert.rejects(maskText('c1', digits, one), isOverloaded);
    abort();
    await assert.rejects(gone, { name: 'AbortError' });
    const last = maskText('c1', digits, one);
    assert.deepEqual(await Promise.all([first, last]), ['a*', 'c*']);
    await assert.rejects(maskText('d1', digits, { ...one, signal }), { name: 'AbortError' });
  });

  it('is not kept waiting by a caller who left in the middle', async (t) => {
    const { maskText, threads } = masking(t, { threadsMax: 1 });
    const { signal, abort } = leaving();
    const gone = maskText(hostileText, hostile, { ...one, signal });
    abort();
    await assert.rejects(gone, { name: 'AbortError' });
    assert.equal(await maskText('a1', digits, one), 'a*');
    assert.equal(threads.length, 1);
  });
});

describe('the end of a thread', () => {
  it('in the middle of a mask fails that mask alone', async (t) => {
    const { maskText, threads } = masking(t, { threadsMax: 1 });
    const failed = assert.rejects(maskText(hostileText, hostile, one), isFailure);
    const others = [maskText('a1', digits, one), maskText('b1', digits, two)];
    await turn();
    const [thread] = threads;
    assert.ok(thread);
    await once(thread, 'online');
    await thread.terminate();
    await failed;
    assert.deepEqual(await Promise.all(others), ['a*', 'b*']);
    assert.equal(threads.length, 2);
  });

  it('comes to a mask that takes too long, which is refused as for its work', async (t) => {
    const { maskText, threads } = masking(t, { threadsMax: 1, maskMsMax: 1 });
    await assert.rejects(maskText(hostileText, hostile, one), isRefused);
    await assert.rejects(maskText(hostileText, hostile, two), isRefused);
    assert.equal(threads.length, 2);
  });

  it('comes when it has been idle, and the next mask has another', async (t) => {
    const { maskText, threads } = masking(t, { idleMs: 0 });
    assert.equal(await maskText('a1', digits, one), 'a*');
    const [thread] = threads;
    assert.ok(thread);
    // An idle thread keeps no process alive, so that something else must.
    const alive = setInterval(() => undefined, 1_000);
    await once(thread, 'exit');
    clearInterval(alive);
    assert.equal(await maskText('b1', digits, one), 'b*');
    assert.equal(threads.length, 2);
  });

  it('while it is idle goes unnoticed', async (t) => {
    const { maskText, threads } = masking(t);
    await maskText('a1', digits, one);
    await threads[0]?.terminate();
    assert.equal(await maskText('b1', digits, one), 'b*');
  });

  it('comes to all at a stop, also in the middle, and what waits fails', async (t) => {
    const { maskText, close, threads } = masking(t);
    const failed = [one, one, two, { partition: 'three' }].map((options) =>
      assert.rejects(maskText(hostileText, hostile, options), isStopping),
    );
    await turn();
    const ended = threads.map((thread) => once(thread, 'exit'));
    assert.equal(ended.length, 2);
    await close();
    await Promise.all([...failed, ...ended]);
    await assert.rejects(maskText('a1', digits, one), isStopping);
    assert.equal(threads.length, 2);
  });
});

function leaving() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
