/** What tenants' code may use, under both contracts. */
import assert from 'node:assert/strict';
import * as crypto from 'node:crypto';
import test, { after } from 'node:test';
import { VaultError } from '../../src/base/errors.ts';
import * as limits from '../../src/reactors/sandbox/limits.ts';
import type { SandboxCall, ServeRequest } from '../../src/reactors/sandbox/sandbox.ts';
import { callOf, endOf, moduleOf, returnedBy } from '../support/code-calls.ts';
import { openTestSandbox } from '../support/sandboxes.ts';

const sandbox = openTestSandbox();
after(() => sandbox.close());

function value(body: string, more: Partial<SandboxCall> = {}): Promise<unknown> {
  return returnedBy(sandbox, callOf(moduleOf(body), more));
}

async function errorOf(body: string, more: Partial<SandboxCall> = {}) {
  const result = await sandbox.run(callOf(moduleOf(body), more));
  assert.equal(result.kind, 'threw', JSON.stringify(result));
  if (result.kind !== 'threw') return undefined;
  const { place: _, ...error } = result.error;
  return error;
}

test('node-bt: the function gets what was handed in, and bt as null', async () => {
  const input = { args: { a: 'é' }, configuration: { KEY: 'x' } };
  assert.deepEqual(await value('return req', { input }), { ...input, bt: null, vault: null });
});

test('a function that is not async, and one that is exported as default', async () => {
  const echo = 'module.exports = function (req) {return {raw: req.args}}';
  const input = { args: { a: 1 } };
  assert.deepEqual(await returnedBy(sandbox, callOf(echo, { input })), { raw: { a: 1 } });
  assert.equal(await value('MODULE exports.default = () => 2'), 2);
});

test('node22: the event has a logger', async () => {
  const code =
    "event.logger.info('a', { b: 1 }); event.logger.warn('c'); return { res: { body: event.req } }";
  const call = callOf(`module.exports = async function (event) { ${code} }`, {
    contract: 'node22',
    input: { req: { a: 1 }, configuration: {} },
  });
  const result = await sandbox.run(call);
  assert.deepEqual(result.kind === 'returned' && result.value, { res: { body: { a: 1 } } });
  assert.deepEqual(
    result.log.map(({ level, text }) => [level, text]),
    [
      ['info', 'a {"b":1}'],
      ['warn', 'c'],
    ],
  );
});

test('what was logged before an error or an end is in the log', async () => {
  for (const end of ['throw 1', 'for (;;);']) {
    const call = callOf(moduleOf(`console.error('before'); ${end}`), { timeoutMs: 1_000 });
    assert.deepEqual(
      (await sandbox.run(call)).log.map(({ text }) => text),
      ['before'],
    );
  }
});

const digests = "const c = require('crypto'); const k = Buffer.from('6b', 'hex');";

test('hashes, hmacs and comparisons are those of Node', async () => {
  assert.deepEqual(
    await value(
      `${digests} return [c.createHash('sha256').update('a').update(Buffer.from('b')).digest('hex'),
        c.createHmac('sha512', k).update('a').digest('base64'), c.timingSafeEqual(k, k),
        c.randomBytes(9).length, c.randomUUID().length, c.randomInt(5) < 5]`,
    ),
    [
      crypto.createHash('sha256').update('ab').digest('hex'),
      crypto.createHmac('sha512', 'k').update('a').digest('base64'),
      true,
      9,
      36,
      true,
    ],
  );
});

test('AES in four modes, which Node can open', async () => {
  const key = crypto.randomBytes(32);
  const iv = crypto.randomBytes(16);
  const input = { args: { key: key.toString('hex'), iv: iv.toString('hex') } };
  const given = `const c = require('crypto'); const [key, iv] = [Buffer.from(req.args.key, 'hex'),
    Buffer.from(req.args.iv, 'hex')];`;
  for (const mode of ['cbc', 'ctr']) {
    const code = `${given} const e = c.createCipheriv('aes-256-${mode}', key, iv);
      return e.update('secret', 'utf8', 'hex') + e.final('hex')`;
    const opener = crypto.createDecipheriv(`aes-256-${mode}`, key, iv);
    const text = String(await value(code, { input }));
    assert.equal(opener.update(text, 'hex', 'utf8') + opener.final('utf8'), 'secret');
  }
  const gcm = `${given} const e = c.createCipheriv('aes-256-gcm', key, iv.subarray(0, 12));
    e.setAAD(Buffer.from('x')); const bytes = Buffer.concat([e.update('secret'), e.final()]);
    const d = c.createDecipheriv('aes-256-gcm', key, iv.subarray(0, 12)); d.setAAD(Buffer.from('x'));
    d.setAuthTag(e.getAuthTag()); return Buffer.concat([d.update(bytes), d.final()]).toString()`;
  assert.equal(await value(gcm, { input }), 'secret');
  assert.match(
    JSON.stringify(await errorOf(`require('crypto').createCipheriv('des', 'a', null).final()`)),
    /Unknown cipher/,
  );
});

for (const [type, options] of [
  ['rsa', { modulusLength: 2048 }],
  ['ec', { namedCurve: 'P-256' }],
] as const) {
  test(`${type} signatures, which Node verifies, and the reverse`, async () => {
    const encoding = {
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    };
    const { publicKey, privateKey } = crypto.generateKeyPairSync(
      type as 'rsa',
      {
        ...options,
        ...encoding,
      } as never,
    ) as unknown as { publicKey: string; privateKey: string };
    const input = {
      args: {
        publicKey,
        privateKey,
        signature: crypto.sign('sha256', Buffer.from('a'), privateKey).toString('base64'),
      },
    };
    const code = `const c = require('node:crypto');
      const s = c.createSign('RSA-SHA256').update('a').sign(req.args.privateKey, 'base64');
      const ok = c.createVerify('sha256').update('a')
        .verify(c.createPublicKey(req.args.publicKey), req.args.signature, 'base64');
      const bad = c.verify('sha256', Buffer.from('b'), req.args.publicKey, Buffer.from(req.args.signature, 'base64'));
      return [s, ok, bad, c.createPrivateKey(req.args.privateKey).asymmetricKeyType]`;
    const [signature, ok, bad, kind] = (await value(code, { input })) as [
      string,
      boolean,
      boolean,
      string,
    ];
    assert.ok(
      crypto.verify('sha256', Buffer.from('a'), publicKey, Buffer.from(signature, 'base64')),
    );
    assert.deepEqual([ok, bad, kind], [true, false, type]);
  });
}

test('WebCrypto: digest, HMAC and AES-GCM', async () => {
  const code = `const key = await crypto.subtle.importKey('raw', new TextEncoder().encode('k'),
    { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);
    const data = new TextEncoder().encode('a'); const signature = await crypto.subtle.sign('HMAC', key, data);
    const aes = await crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-GCM', true, ['encrypt', 'decrypt']);
    const iv = crypto.getRandomValues(new Uint8Array(12));
    const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, aes, data);
    return [Buffer.from(signature).toString('hex'), await crypto.subtle.verify('HMAC', key, signature,
      data), Buffer.from(await crypto.subtle.digest('SHA-1', data)).toString('hex'),
      new TextDecoder().decode(await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, aes, sealed)),
      sealed.byteLength]`;
  assert.deepEqual(await value(code), [
    crypto.createHmac('sha256', 'k').update('a').digest('hex'),
    true,
    crypto.createHash('sha1').update('a').digest('hex'),
    'a',
    17,
  ]);
  const closed = `const k = await crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-GCM', false, []);
      return crypto.subtle.exportKey('raw', k)`;
  assert.match(JSON.stringify(await errorOf(closed)), /not extractable/);
});

test('buffers encode, decode, read and write as those of Node', async () => {
  const code = `const b = Buffer.from('é€😀'); const w = Buffer.alloc(8);
    w.writeUInt32BE(1, 0); w.writeInt16LE(-2, 4);
    return [b.toString('hex'), b.toString('base64url'), Buffer.from('w6k', 'base64').toString(),
      Buffer.from('ff00', 'hex').toJSON(), w.toString('hex'), w.readUInt32BE(0), w.readInt16LE(4),
      Buffer.concat([b, w]).length, b.slice(0, 2).toString(), Buffer.isBuffer(b.subarray(1)),
      b.equals(Buffer.from('é€😀')), Buffer.byteLength('é'), b.indexOf('€'), Buffer.from([1,
      2]).toString('latin1'), new Uint8Array(b.buffer).length >= b.length]`;
  const b = Buffer.from('é€😀');
  assert.deepEqual(await value(code), [
    b.toString('hex'),
    b.toString('base64url'),
    'é',
    { type: 'Buffer', data: [255, 0] },
    '00000001feff0000',
    1,
    -2,
    b.length + 8,
    'é',
    true,
    true,
    2,
    2,
    '\u0001\u0002',
    true,
  ]);
});

test('querystring, url and uuid', async () => {
  const code = `const q = require('querystring'), u = require('url'), id = require('uuid');
    return [q.stringify({ a: [1, 2], b: 'x y' }), q.parse('a=1&a=2&b=x+y'),
      u.parse('https://u:p@a.example:8/b?c=d#e', true).query.c, new u.URL('../x',
      'https://a.example/b/c').href, id.v5('a.example', id.v5.DNS), id.validate(id.v4()),
      id.version(id.v1()), new URLSearchParams({ a: 'b c' }).toString()]`;
  assert.deepEqual(await value(code), [
    'a=1&a=2&b=x%20y',
    { a: ['1', '2'], b: 'x y' },
    'd',
    'https://a.example/x',
    uuidV5('a.example'),
    true,
    1,
    'a=b+c',
  ]);
});

test('the query of a URL and the URL follow each other', async () => {
  const code = `const u = new URL('https://a.example/b?x=1&y=2#h'), p = u.searchParams;
    p.set('x', 'ü &'); p.append('z', '3');
    const written = u.href; u.search = '?q=7';
    const read = u.searchParams.get('q'); u.searchParams.delete('q');
    return [written, read, u.href, u.searchParams === u.searchParams,
      u.searchParams instanceof URLSearchParams, URL.canParse('b'), URL.canParse('/b', u)]`;
  assert.deepEqual(await value(code), [
    'https://a.example/b?x=%C3%BC+%26&y=2&z=3#h',
    '7',
    'https://a.example/b#h',
    true,
    true,
    false,
    true,
  ]);
});

/** RFC 9562 section 5.5, in the namespace of DNS names. */
function uuidV5(name: string): string {
  const space = Buffer.from('6ba7b8109dad11d180b400c04fd430c8', 'hex');
  const hash = crypto.createHash('sha1').update(space).update(name).digest().subarray(0, 16);
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x50;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  return hash.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

test("the operator's modules can be required, and require each other", async () => {
  const modules = new Map([
    ['adder', "const { one } = require('@scope/one'); exports.add = (x) => x + one;"],
    ['@scope/one', 'module.exports = { one: 1 };'],
  ]);
  assert.equal(await value("return require('adder').add(2)", { modules }), 3);
  assert.match(JSON.stringify(await errorOf("require('adder')")), /Cannot find module 'adder'/);
});

test('fetch asks the vault, and gives a response', async () => {
  const asked: ServeRequest[] = [];
  const serve: SandboxCall['serve'] = async (request) => {
    asked.push(request);
    return {
      status: 201,
      statusText: 'Created',
      headers: [['X-A', 'b']],
      body: Buffer.from('{"a":"é"}').toString('base64'),
    };
  };
  const code = `const r = await fetch('https://a.example/b', { method: 'post',
    headers: { Authorization: 'x' }, body: JSON.stringify({ c: 1 }) }); return [r.status, r.ok,
    r.headers.get('x-a'), await r.clone().text(), await r.json()]`;
  assert.deepEqual(await value(code, { serve }), [201, true, 'b', '{"a":"é"}', { a: 'é' }]);
  const body = Buffer.from('{"c":1}').toString('base64');
  const headers = [
    ['authorization', 'x'],
    ['content-type', 'text/plain;charset=UTF-8'],
  ];
  const input = { url: 'https://a.example/b', method: 'POST', headers, body };
  assert.deepEqual(asked, [{ operation: 'fetch', input }]);
});

test('a refusal reaches the code with its public text and status; any other error says nothing', async () => {
  const refused = new VaultError('forbidden', {
    public: 'The host is not allowed.',
    internal: 'secret',
  });
  const code = "return fetch('https://a.example').catch((e) => [e.name, e.message, e.status ?? 0])";
  const failing = (error: Error) => ({ serve: async () => Promise.reject(error) });
  assert.deepEqual(await value(code, failing(refused)), [
    'TypeError',
    'The host is not allowed.',
    403,
  ]);
  assert.deepEqual(await value(code, failing(new Error('secret'))), [
    'TypeError',
    'The request failed.',
    0,
  ]);
});

test(`a call fetches at most ${limits.fetchesMax} times`, async () => {
  const serve = async () => ({ status: 200, statusText: '', headers: [], body: '' });
  const code = (times: number) =>
    `for (let i = 0; i < ${times}; i += 1) await fetch('https://a.example'); return 'done'`;
  assert.equal(await value(code(limits.fetchesMax), { serve }), 'done');
  const error = await errorOf(code(limits.fetchesMax + 1), { serve });
  assert.match(JSON.stringify(error), new RegExp(`at most ${limits.fetchesMax} fetch`));
});

test('bt and vault ask for what they are called', async () => {
  const asked: ServeRequest[] = [];
  const serve: SandboxCall['serve'] = async (request) => {
    asked.push(request);
    return { id: 'x' };
  };
  const code = `await req.bt.tokens.retrieve('a'); await req.bt.tokens.create({ type: 'card' });
    await req.vault.tokens.update('b', { data: 1 }); await req.bt.tokens.delete('c');
    await req.bt.tokenize({ a: 1 }); return req.bt.detokenize({ b: '{{ x }}' })`;
  assert.deepEqual(await value(code, { serve, bt: true }), { id: 'x' });
  assert.deepEqual(asked, [
    { operation: 'bt.tokens.retrieve', input: { id: 'a' } },
    { operation: 'bt.tokens.create', input: { body: { type: 'card' } } },
    { operation: 'bt.tokens.update', input: { id: 'b', body: { data: 1 } } },
    { operation: 'bt.tokens.delete', input: { id: 'c' } },
    { operation: 'bt.tokenize', input: { body: { a: 1 } } },
    { operation: 'bt.detokenize', input: { body: { b: '{{ x }}' } } },
  ]);
});

test('requests under way are aborted when the call ends', async () => {
  const aborted = Promise.withResolvers<void>();
  const serve: SandboxCall['serve'] = (_request, signal) => {
    signal.addEventListener('abort', () => aborted.resolve());
    return new Promise(() => {});
  };
  assert.equal(await value("fetch('https://a.example'); return 1", { serve }), 1);
  await aborted.promise;
});

test('timers and aborts', async () => {
  const code = `const signal = AbortSignal.timeout(10); const late = await fetch('https://a.example',
    { signal }).catch((e) => e.name); const c = new AbortController(); c.abort(); return [late,
    await fetch('https://a.example', c).catch((e) => e.name)]`;
  assert.deepEqual(await value(code, { serve: () => new Promise(() => {}) }), [
    'TimeoutError',
    'AbortError',
  ]);
});

const classes = {
  BadRequestError: [400, 'Bad Request'],
  InvalidReactorConfigurationError: [400, 'Invalid Reactor Configuration'],
  AuthenticationError: [401, 'Authentication Failed'],
  InvalidPaymentMethodError: [402, 'Invalid Payment Method'],
  AuthorizationError: [403, 'Forbidden'],
  RateLimitError: [429, 'Rate Limit Exceeded'],
  ReactorRuntimeError: [500, 'Reactor Runtime Error'],
  ServiceUnavailableError: [503, 'Service Unavailable'],
} as const;

test('each error class has its status and text, under both names', async () => {
  for (const [name, [status, detail]] of Object.entries(classes)) {
    const from =
      name.length % 2 ? 'strongroom/errors' : '@basis-theory/basis-theory-reactor-formulas-sdk-js';
    const error = await errorOf(`const e = require('${from}'); throw new e.${name}('why')`);
    assert.deepEqual(error, { name, status, detail, errors: { error: ['why'] } });
  }
});

test('the argument of an error becomes lists of texts by property', async () => {
  const thrown = async (given: string) =>
    (
      await errorOf(
        `const { BadRequestError } = require('strongroom/errors'); throw new BadRequestError(${given})`,
      )
    )?.errors;
  assert.deepEqual(await thrown("['a', { b: 1 }]"), { error: ['a', '{"b":1}'] });
  assert.deepEqual(await thrown("new Error('a')"), { error: ['a'] });
  assert.deepEqual(await thrown("{ a: 'b', c: ['d', 2], e: { f: 1 } }"), {
    a: ['b'],
    c: ['d', '2'],
    e: ['{"f":1}'],
  });
  assert.match(JSON.stringify(await thrown('')), /support/);
});

test('a custom response has the status, headers and body of the code', async () => {
  const code = `const { CustomHttpResponseError } = require('strongroom/errors');
    throw new CustomHttpResponseError({ status: 418, headers: { 'X-A': 'b', 'X-N': 1 }, body: { c: null } })`;
  const error = await errorOf(code);
  assert.deepEqual(error?.response, {
    status: 418,
    headers: { 'X-A': 'b', 'X-N': '1' },
    body: { c: null },
  });
});

test('whatever else is thrown is a runtime error', async () => {
  assert.deepEqual(await errorOf("throw new TypeError('x')"), {
    name: 'other',
    status: 500,
    detail: 'Reactor Runtime Error',
    errors: { error: ['TypeError: x'] },
  });
  assert.equal((await errorOf('MODULE module.exports = 1'))?.name, 'InvalidReactorFormulaError');
});

test('a result and an input may be as large as their limits, and no larger', async () => {
  const quotes = 2;
  const end = async (length: number) =>
    endOf(await sandbox.run(callOf(moduleOf(`return 'x'.repeat(${length})`))));
  // The text is in a message of its own: {"value":…}.
  const longest = limits.resultBytesMax - quotes - '{"value":}'.length;
  assert.equal(await end(longest), 'returned');
  assert.equal(await end(longest + 1), 'result too large');
  const inputEnd = async (length: number) => {
    const input = { args: 'x'.repeat(length - '{"args":""}'.length) };
    return endOf(await sandbox.run(callOf(moduleOf('return 1'), { input })));
  };
  assert.equal(await inputEnd(limits.inputBytesMax), 'returned');
  assert.equal(await inputEnd(limits.inputBytesMax + 1), 'input too large');
});

test('a result may have as many levels as the limit, and no more', async () => {
  const nested = (levels: number) =>
    `let a = 1; for (let i = 0; i < ${levels}; i += 1) a = [a]; return a`;
  const end = async (levels: number) => endOf(await sandbox.run(callOf(moduleOf(nested(levels)))));
  assert.equal(await end(limits.nestingMax), 'returned');
  assert.equal(await end(limits.nestingMax + 8), 'result not JSON');
});
