/** A child process that belongs to an attacker: whatever it writes on its channel harms its own call only. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { CodeLog } from '../../src/reactors/sandbox/code-log.ts';
import { type ProcessCall, startCodeProcess } from '../../src/reactors/sandbox/code-process.ts';
import { frame, frameKinds } from '../../src/reactors/sandbox/frames.ts';
import type { Isolation } from '../../src/reactors/sandbox/isolation.ts';
import * as limits from '../../src/reactors/sandbox/limits.ts';
import { ProcessorShare } from '../../src/reactors/sandbox/priority.ts';
import { ProtocolError, requestsOf } from '../../src/reactors/sandbox/requests.ts';
import { outcomeOf } from '../../src/reactors/sandbox/results.ts';

/** What the scripts below have; they are whole processes instead of ours. */
const tools = `
const { writeSync, readSync } = require('node:fs');
const frame = (kind, text, length) => {
  const payload = Buffer.from(text);
  const head = Buffer.alloc(5);
  head.writeUInt32LE(length ?? payload.length, 0);
  head.writeUInt8(kind, 4);
  return Buffer.concat([head, payload]);
};
const send = (...given) => { const bytes = frame(...given); let at = 0;
  while (at < bytes.length) try { at += writeSync(1, bytes, at) } catch {} };
const wait = () => readSync(0, Buffer.alloc(65536));
const kinds = ${JSON.stringify(frameKinds)};
`;

function hostile(script: string): Isolation {
  return { name: 'none', isFiltered: false, words: [process.execPath, '-e', tools + script] };
}

async function ended(script: string, more: Partial<ProcessCall> = {}) {
  let ends = 0;
  const onEnd = () => {
    ends += 1;
  };
  const child = startCodeProcess(hostile(script), { share: new ProcessorShare(), onEnd });
  const requests = requestsOf({ bt: true, serve: async () => 'served' });
  const log = new CodeLog();
  try {
    await child.ready();
    const end = await child.run({
      payload: '{}',
      modules: new Map(),
      timeoutMs: 20_000,
      signal: undefined,
      onRequest: requests.reply,
      onLog: (line) => log.add(line),
      onWaiting: () => undefined,
      ...more,
    });
    if ('ended' in end) assert.equal(ends, 1, 'the process is no more when the call ends');
    return { end, log };
  } finally {
    requests.end();
    await child.kill();
    assert.equal(child.isAlive, false);
  }
}

const ready = "send(kinds.ready, '');";
const thenStay = 'for (;;) wait();';

const forged: Readonly<Record<string, string>> = {
  'a kind that does not exist': "send(99, 'x');",
  'a message to the child': "send(kinds.call, '{}');",
  'that it waits again, without a reply': "send(kinds.waiting, '0'); send(kinds.waiting, '0');",
  'a length of four gigabytes': "send(kinds.log, 'x', 0xffffffff);",
  'a log line that is too long': "send(kinds.log, 'x', 70000);",
  'a request that is too large': `send(kinds.request, 'x', ${3 * limits.requestBytesMax});`,
  'a request that is no JSON': "send(kinds.request, 'nonsense');",
  'a request that is nested a million levels deep': "send(kinds.request, '['.repeat(1e6));",
  'a request without a number': `send(kinds.request, '{"request":{"operation":"fetch","input":{}}}');`,
  'a request for something else': `send(kinds.request, '{"id":1,"request":{"operation":"constructor","input":{}}}');`,
  'a request for __proto__': `send(kinds.request, '{"id":1,"request":{"operation":"__proto__","input":{}}}');`,
  'a body that is no text': `send(kinds.request,
    '{"id":1,"request":{"operation":"fetch","input":{"url":"a","method":"GET","headers":[],"body":{}}}}');`,
  'more requests at one time than a call may have': `for (let id = 1; id < 100;
    id += 1) send(kinds.request, JSON.stringify({ id, request: { operation: 'timer',
    input: { ms: 1e9 } } }));`,
  'ready while a call runs': ready,
  'more of a log than anybody reads':
    "for (let i = 0; i < 1e4; i += 1) send(kinds.log, 'x'.repeat(60000));",
  // Noise whose fifth byte is the kind of a result would rightly be too large a result.
  noise: `const bytes = require('node:crypto').randomBytes(1000);
    if (bytes[4] === kinds.result) bytes[4] = 0;
    for (let i = 0; i < 100; i += 1) writeSync(1, bytes);`,
};

for (const [name, script] of Object.entries(forged)) {
  test(`${name} ends the process and its call`, async () => {
    const { end } = await ended(`${ready} wait(); ${script} ${thenStay}`);
    assert.deepEqual(end, { ended: 'crashed' });
  });
}

test('a result beyond the limit ends the process before it is read', async () => {
  const { end } = await ended(`${ready} wait(); send(kinds.result, 'x', 2 ** 31); ${thenStay}`);
  assert.deepEqual(end, { ended: 'result too large' });
});

test('a process that says nothing is killed in time', async () => {
  const { end } = await ended(`${ready} ${thenStay}`, { timeoutMs: 50 });
  assert.deepEqual(end, { ended: 'timeout' });
});

test('a process that ignores signals is killed in time', async () => {
  const script =
    "for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(s, () => {}); for (;;);";
  const { end } = await ended(`${ready} wait(); ${script}`, { timeoutMs: 50 });
  assert.deepEqual(end, { ended: 'timeout' });
});

test('a process that ends during a call ends that call', async () => {
  const { end } = await ended(`${ready} wait(); process.abort()`);
  assert.deepEqual(end, { ended: 'crashed' });
});

test('half a message and an end are a crash', async () => {
  const { end } = await ended(
    `${ready} wait(); writeSync(1, frame(kinds.result, '{}').subarray(0, 6)); process.exit()`,
  );
  assert.deepEqual(end, { ended: 'crashed' });
});

test('a second result, and a request between calls, end the process', async () => {
  for (const second of [
    "send(kinds.result, '{}')",
    "send(kinds.request, '{}')",
    "send(kinds.log, '{}')",
  ]) {
    const over = Promise.withResolvers<void>();
    const script = `${ready} wait(); send(kinds.result, '{"value":1}'); ${second}; ${thenStay}`;
    const starting = { share: new ProcessorShare(), onEnd: over.resolve };
    const child = startCodeProcess(hostile(script), starting);
    await child.ready();
    const call = { modules: new Map(), timeoutMs: 20_000, signal: undefined };
    const serving = { onRequest: async () => '', onLog: () => true, onWaiting: () => undefined };
    const end = await child.run({ payload: '{}', ...call, ...serving });
    assert.deepEqual(end, { result: Buffer.from('{"value":1}') });
    await over.promise;
    await assert.rejects(child.ready());
  }
});

test('a request behind what a process is killed for is not served', async () => {
  let served = 0;
  const onRequest = async () => {
    served += 1;
    return '{}';
  };
  const both = "Buffer.concat([frame(kinds.log, '{}'), frame(kinds.request, '{}')])";
  const script = `${ready} wait(); writeSync(1, ${both}); ${thenStay}`;
  const { end } = await ended(script, { onLog: () => false, onRequest });
  assert.deepEqual(end, { ended: 'crashed' });
  assert.equal(served, 0);
});

test('what is never read by the process waits no longer than its call', async () => {
  const large = 'x'.repeat(4 * 1024 * 1024);
  const { end } = await ended(`${ready} for (;;);`, { payload: large, timeoutMs: 50 });
  assert.deepEqual(end, { ended: 'timeout' });
});

test('a caller who goes away ends the process', async () => {
  const leaving = new AbortController();
  const asked = ended(`${ready} ${thenStay}`, { signal: leaving.signal });
  leaving.abort();
  assert.deepEqual((await asked).end, { ended: 'stopped' });
});

const results: Readonly<Record<string, readonly [string, string]>> = {
  'is no JSON': ['nonsense', 'result not JSON'],
  'is empty': ['', 'result not JSON'],
  'is a list': ['[]', 'result not JSON'],
  'is nested a hundred thousand levels deep': ['['.repeat(1e5), 'result not JSON'],
  'names an unknown end': ['{"ended":"pool full"}', 'crashed'],
  'names no end': ['{}', 'crashed'],
  'names an end that every object has': ['{"ended":"constructor"}', 'crashed'],
};

for (const [name, [text, reason]] of Object.entries(results)) {
  test(`a result that ${name} is an end with a reason`, () => {
    assert.deepEqual(outcomeOf(Buffer.from(text)), { kind: 'ended', reason });
  });
}

test('a forged error has a known name and status, and texts only', () => {
  const error = { name: 'toString', status: 200, errors: { a: ['x', 1, {}], b: 7 } };
  assert.deepEqual(outcomeOf(Buffer.from(JSON.stringify({ error }))), {
    kind: 'threw',
    error: {
      name: 'other',
      status: 500,
      detail: 'Reactor Runtime Error',
      errors: { a: ['x'], b: [] },
    },
  });
});

for (const response of [
  { status: 99 },
  { status: 600 },
  { status: '200' },
  { status: 200, headers: { 'a b': 'c' } },
  { status: 200, headers: { a: 'b\r\nc: d' } },
  { status: 200, headers: { a: {} } },
]) {
  test(`a response that is none is a runtime error: ${JSON.stringify(response)}`, () => {
    const error = { name: 'CustomHttpResponseError', errors: {}, response };
    const outcome = outcomeOf(Buffer.from(JSON.stringify({ error })));
    assert.equal(outcome.kind === 'threw' && outcome.error.name, 'other');
  });
}

test('a log is kept up to its limits, and says that it is full', () => {
  const log = new CodeLog();
  const text = 'x'.repeat(1024);
  const line = Buffer.from(JSON.stringify({ level: 'info', text }));
  for (let at = 0; at < 100; at += 1) assert.ok(log.add(line));
  assert.equal(log.lines.length, limits.logBytesMax / 1024 + 1);
  assert.match(log.lines.at(-1)?.text ?? '', /full/);
  const lines = new CodeLog();
  for (let at = 0; at < 2_000; at += 1) lines.add(Buffer.from('{"level":"info","text":""}'));
  assert.equal(lines.lines.length, limits.logLinesMax);
});

test('a message arrives whole, whatever the pieces it comes in', () => {
  const bytes = frame(frameKinds.reply, 'é');
  assert.deepEqual([...bytes.subarray(0, 5)], [2, 0, 0, 0, frameKinds.reply]);
});

test('a result may have as many values as the limit, and no more', () => {
  // The list, and what it is a member of, are values as well.
  const list = (values: number) => Buffer.from(`{"value":[${Array(values).fill('{}').join()}]}`);
  const fitting = Math.floor((limits.valuesMax - 2) / 2);
  assert.equal(outcomeOf(list(fitting)).kind, 'returned');
  assert.equal(outcomeOf(list(fitting + 1)).kind, 'ended');
  const text = JSON.stringify({ value: '[{,"'.repeat(limits.valuesMax) });
  assert.equal(outcomeOf(Buffer.from(text)).kind, 'returned');
});

function request(operation: string, input: object = {}): Buffer {
  return Buffer.from(JSON.stringify({ id: 1, request: { operation, input } }));
}

const requestLimits = {
  fetch: [
    limits.fetchesMax,
    request('fetch', { url: 'https://a.example', method: 'GET', headers: [] }),
  ],
  bt: [limits.vaultCallsMax, request('bt.tokenize', { body: {} })],
} as const;

for (const [kind, [most, payload]] of Object.entries(requestLimits)) {
  test(`a call makes at most ${most} ${kind} requests; of more it reads that they are too many`, async () => {
    const requests = requestsOf({ bt: true, serve: async () => 1 });
    for (let at = 0; at < most; at += 1)
      assert.equal(await requests.reply(payload), '{"id":1,"value":1}');
    assert.match(await requests.reply(payload), /at most/);
  });
}

test('a call has as many timers as the limit, and no more', async () => {
  const requests = requestsOf({ bt: false, serve: async () => 1 });
  const timer = request('timer', { ms: 0 });
  for (let at = 0; at < limits.timersMax; at += 1) await requests.reply(timer);
  assert.match(await requests.reply(timer), /at most/);
});

test('requests beyond all limits are an attack, in number and in bytes', async () => {
  const many = requestsOf({ bt: true, serve: async () => 1 });
  const small = request('bt.tokenize');
  for (let at = 0; at < limits.requestsMax; at += 1) await many.reply(small);
  await assert.rejects(many.reply(small), ProtocolError);
  const large = requestsOf({ bt: true, serve: async () => 1 });
  const megabyte = request('bt.tokenize', { body: 'x'.repeat(1024 * 1024 - 100) });
  const fitting = Math.floor(limits.requestsBytesMax / megabyte.length);
  for (let at = 0; at < fitting; at += 1) await large.reply(megabyte);
  await assert.rejects(large.reply(megabyte), ProtocolError);
});

test('code that has no rights cannot ask for tokens, whatever its process says', async () => {
  const requests = requestsOf({ bt: false, serve: async () => 1 });
  await assert.rejects(requests.reply(request('bt.detokenize')), ProtocolError);
});

test('a reply may be as large as the limit, and no larger', async () => {
  const reply = (length: number) =>
    requestsOf({ bt: true, serve: async () => 'x'.repeat(length) }).reply(request('bt.tokenize'));
  const longest = limits.replyBytesMax - '{"id":1,"value":""}'.length;
  assert.equal((await reply(longest)).length, limits.replyBytesMax);
  assert.match(await reply(longest + 1), /too large/);
});

test('a process that asks and never reads ends once too much waits for it', async () => {
  const asking = `for (let id = 1; id < 20; id += 1)
    send(kinds.request, JSON.stringify({ id, request: { operation: 'bt.tokenize', input: {} } }));`;
  const requests = requestsOf({
    bt: true,
    serve: async () => 'x'.repeat(limits.replyBytesMax / 2),
  });
  const { end } = await ended(`${ready} wait(); ${asking} for (;;);`, {
    onRequest: requests.reply,
  });
  assert.deepEqual(end, { ended: 'crashed' });
});
