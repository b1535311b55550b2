/** HTTP/2 through the forward proxy: a stream is held to what a request of HTTP/1.1 is, and floods end it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http2, { type ClientHttp2Session, type OutgoingHttpHeaders } from 'node:http2';
import { text as textOf } from 'node:stream/consumers';
import { after, suite, test } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { connectTo, startEgress } from '../support/egress.ts';
import { headerOf } from '../support/proxy-calls.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';

const ends: (() => unknown)[] = [];
const lender = { after: (end: () => unknown) => void ends.unshift(end) };
after(async () => {
  for (const end of ends) await end();
});

const { called, vault } = await startEgress(lender);
const { destination } = called;
const port = Number(new URL(vault.running.egressUrl ?? '').port);
const authority = `localhost:${destination.port}`;
const secret = 'plain-api-key-0123456789';
const stars = '*'.repeat(secret.length);

const policy = {
  host: 'localhost',
  port: destination.port,
  methods: ['GET', 'HEAD', 'POST'],
  paths: ['/v1/*'],
  tokens: ['api-key'],
  places: ['header:authorization', 'json:key'],
};

interface Program {
  readonly tenant: TestTenant;
  readonly key: string;
  readonly ca: string;
  readonly placeholder: string;
}

async function newProgram(egress: object = policy): Promise<Program> {
  const tenant = await newTenant(vault);
  await tenant.token({ id: 'api-key', type: 'token', data: secret });
  const key = await tenant.application({ permissions: ['proxy:invoke'], egress: [egress] });
  const { body } = await tenant.send('GET', '/egress/authority', { key });
  const made = await tenant.send('POST', '/placeholders', { key, body: { token_id: 'api-key' } });
  return { tenant, key, ca: body.certificate, placeholder: made.body.placeholder };
}

async function secureFor({ key, ca }: Program): Promise<TLSSocket> {
  const { socket } = await connectTo(lender, { port, authority, key });
  const ALPNProtocols = ['h2', 'http/1.1'];
  const secured = connectTls({ socket, ca, servername: 'localhost', ALPNProtocols });
  await once(secured, 'secureConnect');
  assert.equal(secured.alpnProtocol, 'h2');
  return secured.on('error', () => undefined);
}

async function sessionOf(
  program: Program,
  options?: http2.ClientSessionOptions,
): Promise<ClientHttp2Session> {
  const secured = await secureFor(program);
  const session = http2.connect(`https://${authority}`, {
    ...options,
    createConnection: () => secured,
  });
  lender.after(() => session.destroy());
  return session.on('error', () => undefined);
}

interface Received {
  readonly status: number;
  readonly headers: http2.IncomingHttpHeaders;
  readonly text: string;
  readonly trailers: http2.IncomingHttpHeaders;
}

/** Rejects if the stream is reset. */
async function send(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: string | Buffer,
): Promise<Received> {
  const stream = session.request(
    { ':path': '/v1/x', ...headers },
    { endStream: body === undefined },
  );
  if (body !== undefined) stream.end(body);
  let trailers = {};
  stream.on('trailers', (sent) => {
    trailers = sent;
  });
  const [sent] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
  return { status: Number(sent[':status']), headers: sent, text: await textOf(stream), trailers };
}

const json = { ':method': 'POST', 'content-type': 'application/json' };
const received = () => destination.requests.splice(0);

const frameTypes = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  windowUpdate: 8,
  continuation: 9,
};
const endStream = 1;
const endHeaders = 4;

interface Frame {
  readonly type: keyof typeof frameTypes;
  readonly flags?: number;
  readonly stream?: number;
  readonly payload?: Buffer;
}

/** RFC 9113, section 4.1. */
function frame({ type, flags = 0, stream = 0, payload = Buffer.alloc(0) }: Frame): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = frameTypes[type];
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Literals without indexing, of fewer than 127 bytes each (RFC 7541, section 6.2.2). */
function block(...fields: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [
      Buffer.from([0, name.length]),
      Buffer.from(name, 'latin1'),
      Buffer.from([value.length]),
      Buffer.from(value, 'latin1'),
    ]),
  );
}

const preface = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame({ type: 'settings' }),
]);
const place = [
  [':scheme', 'https'],
  [':authority', authority],
  [':path', '/v1/x'],
] as const;
const getHead = (...others: readonly (readonly [string, string])[]) =>
  block([':method', 'GET'], ...place, ...others);

/** The frames that came until the other side ended the connection, or until one is of these. */
async function framesUntil(
  secured: TLSSocket,
  isLast: (one: { type: number; stream: number; payload: Buffer }) => boolean = () => false,
) {
  const frames: { type: number; stream: number; flags: number; payload: Buffer }[] = [];
  let rest = Buffer.alloc(0);
  try {
    for await (const chunk of secured as AsyncIterable<Buffer>) {
      rest = Buffer.concat([rest, chunk]);
      for (;;) {
        const end = rest.length < 9 ? Number.POSITIVE_INFINITY : 9 + rest.readUIntBE(0, 3);
        if (rest.length < end) break;
        const one = {
          type: rest[3] ?? 0,
          flags: rest[4] ?? 0,
          stream: rest.readUInt32BE(5),
          payload: rest.subarray(9, end),
        };
        frames.push(one);
        rest = rest.subarray(end);
        if (isLast(one)) return frames;
      }
    }
  } catch {
    // The connection was reset.
  }
  return frames;
}

suite('HTTP/2 through the forward proxy', () => {
  test('has values in requests, entries before them, bodies, cookies, and trailers, many at once', async () => {
    const program = await newProgram();
    received();
    destination.behave(async ({ response, received: all }) => {
      const { body, headers } = await all;
      response.writeHead(200, { trailer: 'x-last', 'x-cookie': headerOf(headers, 'cookie') ?? '' });
      response.addTrailers({ 'x-last': 'the end' });
      response.end(`${body.length}`);
    });
    const session = await sessionOf(program);
    const body = JSON.stringify({ key: program.placeholder, text: 'x'.repeat(20_000) });
    const responses = await Promise.all(
      Array.from({ length: 20 }, () =>
        send(session, { ...json, cookie: ['a=1', 'b=2'], te: 'trailers' }, body),
      ),
    );
    for (const { status, text, trailers, headers } of responses) {
      assert.equal(status, 200, text);
      assert.equal(Number(text), body.length - program.placeholder.length + secret.length);
      assert.equal(trailers['x-last'], 'the end');
      assert.equal(headers['x-cookie'], 'a=1; b=2');
      assert.equal(headers['connection'], undefined);
    }
    const sent = received();
    assert.equal(sent.length, 20);
    const got = await send(session, { authorization: `Bearer ${program.placeholder}` });
    assert.equal(got.status, 200);
    const [one] = received();
    assert.equal(headerOf(one?.headers ?? [], 'authorization'), `Bearer ${secret}`);
    assert.equal(headerOf(one?.headers ?? [], 'transfer-encoding'), undefined);
    assert.equal((await send(session, { ':method': 'HEAD' })).text, '');
    const messages = (await program.tenant.rows('logs')).map(({ message }) => message);
    assert.ok(messages.some((entry) => /POST to localhost:\d+, proxy egress/.test(entry)));
    session.close();
  });

  test('takes values out of headers, bodies, what is compressed, and trailers', async () => {
    const program = await newProgram();
    const session = await sessionOf(program);
    const sending = { authorization: `Bearer ${program.placeholder}` };
    destination.behave(async ({ response, received: all }) => {
      await all;
      response.writeHead(200, { trailer: 'x-last', 'x-echo': secret });
      for (const character of `begin ${secret} end`) response.write(character);
      response.addTrailers({ 'x-last': secret });
      response.end();
    });
    const { headers, text, trailers } = await send(session, sending);
    assert.equal(text, `begin ${stars} end`);
    assert.equal(headers['x-echo'], stars);
    assert.equal(trailers['x-last'], stars);
    destination.behave(({ response }) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(secret));
    });
    assert.equal((await send(session, sending)).text, stars);
    destination.behave(({ response }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: ${secret}\n\ndata: x\n\n`);
    });
    const stream = session.request({ ':path': '/v1/x', ...sending });
    const [first] = (await once(stream.setEncoding('utf8'), 'data')) as [string];
    assert.match(first, /^data: \*+\n/, 'as it comes');
    stream.close();
    session.close();
  });

  test('a response that breaks off is a stream that is reset, and the session goes on', async () => {
    const program = await newProgram();
    const session = await sessionOf(program);
    destination.behave(({ response }) => {
      response.writeHead(200, { 'content-length': 100 }).write('x');
      setImmediate(() => response.destroy());
    });
    await assert.rejects(send(session, {}), /NGHTTP2_INTERNAL_ERROR/);
    destination.behave(({ response }) => void response.end('whole'));
    assert.equal((await send(session, {})).text, 'whole');
    session.close();
  });

  test('a request that is reset sends no body that looks whole', async () => {
    const secured = await secureFor(await newProgram());
    received();
    destination.behave(({ response }) => void response.end());
    const payload = block([':method', 'POST'], ...place, ['content-type', 'text/plain']);
    const flags = endHeaders + endStream;
    secured.write(
      Buffer.concat([
        preface,
        frame({ type: 'headers', flags: endHeaders, stream: 1, payload }),
        frame({ type: 'data', stream: 1, payload: Buffer.alloc(10_000, 'x') }),
        // NO_ERROR, with which streams end that are whole.
        frame({ type: 'reset', stream: 1, payload: Buffer.alloc(4) }),
        frame({ type: 'headers', flags, stream: 3, payload: getHead() }),
      ]),
    );
    await framesUntil(secured, ({ stream }) => stream === 3);
    assert.deepEqual(
      received().map(({ method }) => method),
      ['GET'],
    );
    secured.destroy();
  });

  test('403 and 400: no path, method, host, or place beyond the policy, and nothing is sent', async () => {
    const program = await newProgram();
    const session = await sessionOf(program);
    received();
    for (const [headers, status] of [
      [{ ':path': '/v2/x' }, 403],
      [{ ':method': 'PUT' }, 403],
      [{ ':authority': 'evil.example' }, 400],
      [{ ':authority': 'localhost:1' }, 400],
      [{ ':authority': 'localhost' }, 400],
      [{ host: 'evil.example' }, 400],
      [{ ':scheme': 'http' }, 400],
      [{ ':path': 'https://evil.example/v1/x' }, 400],
      [{ 'x-other': program.placeholder }, 403],
      [{ ':path': `/v1/${program.placeholder}` }, 403],
      [{ cookie: `a=${program.placeholder}` }, 403],
    ] as const) {
      const response = await send(session, headers).catch((error: Error) => error.message);
      if (typeof response === 'string')
        assert.match(response, /PROTOCOL_ERROR/, JSON.stringify(headers));
      else assert.equal(response.status, status, `${JSON.stringify(headers)}: ${response.text}`);
    }
    const connecting = session.request({ ':method': 'CONNECT', ':authority': authority });
    const [refused] = (await once(connecting, 'response')) as [http2.IncomingHttpHeaders];
    assert.equal(refused[':status'], 400);
    assert.deepEqual(received(), []);
    session.close();
  });

  for (const [what, head] of Object.entries({
    'two authorities': getHead([':authority', 'evil.example']),
    'a field of a connection': getHead(['connection', 'keep-alive']),
    'chunks of HTTP/1.1': getHead(['transfer-encoding', 'chunked']),
    'an upgrade': getHead(['upgrade', 'websocket']),
    'a line feed in the path': block(
      [':method', 'GET'],
      [':scheme', 'https'],
      [':authority', authority],
      [':path', '/v1/x HTTP/1.1\r\nx-a: b'],
    ),
    'a space in the path': block(
      [':method', 'GET'],
      [':scheme', 'https'],
      [':authority', authority],
      [':path', '/v1/x /v1/y'],
    ),
    'a method of two lines': block(
      [':method', 'GET /v1/y HTTP/1.1\r\nx:'],
      [':scheme', 'https'],
      [':authority', authority],
      [':path', '/v1/x'],
    ),
    'a capital in a name': getHead(['X-A', 'b']),
    'no host': block([':method', 'GET'], [':scheme', 'https'], [':path', '/v1/x']),
    'the protocol of a WebSocket': block(
      [':method', 'CONNECT'],
      [':protocol', 'websocket'],
      [':scheme', 'https'],
      [':authority', authority],
      [':path', '/v1/x'],
    ),
  })) {
    test(`a stream with ${what} is refused, and nothing of it is sent`, async () => {
      const secured = await secureFor(await newProgram());
      received();
      const flags = endHeaders + endStream;
      secured.write(
        Buffer.concat([preface, frame({ type: 'headers', flags, stream: 1, payload: head })]),
      );
      const frames = await framesUntil(
        secured,
        ({ type, stream }) =>
          stream === 1 && (type === frameTypes.reset || type === frameTypes.headers),
      );
      const last = frames.at(-1);
      // The status of the static table for 400 (RFC 7541, appendix A).
      const isRefused = last?.type === frameTypes.headers ? last.payload[0] === 0x8c : true;
      assert.ok(isRefused, JSON.stringify(last));
      assert.deepEqual(received(), []);
      secured.destroy();
    });
  }

  test('a field that would be two in HTTP/1.1 is left out', async () => {
    const secured = await secureFor(await newProgram());
    received();
    destination.behave(({ response }) => void response.end());
    const payload = getHead(
      ['x-a', 'b\r\nhost: evil.example'],
      ['x-a: b\r\nx-b', 'c'],
      ['x-c', 'd'],
    );
    const flags = endHeaders + endStream;
    secured.write(Buffer.concat([preface, frame({ type: 'headers', flags, stream: 1, payload })]));
    await framesUntil(secured, ({ type }) => type === frameTypes.headers);
    const [sent] = received();
    assert.equal(headerOf(sent?.headers ?? [], 'x-c'), 'd');
    assert.ok(!/evil|x-a|x-b/.test(JSON.stringify(sent?.headers)));
    secured.destroy();
  });

  test('no more of a body is sent than its length says', async () => {
    const secured = await secureFor(await newProgram());
    received();
    const payload = block(
      [':method', 'POST'],
      [':scheme', 'https'],
      [':authority', authority],
      [':path', '/v1/x'],
      ['content-length', '5'],
    );
    const smuggled = `helloGET /v1/y HTTP/1.1\r\nhost: ${authority}\r\n\r\n`;
    secured.write(
      Buffer.concat([
        preface,
        frame({ type: 'headers', flags: endHeaders, stream: 1, payload }),
        frame({ type: 'data', flags: endStream, stream: 1, payload: Buffer.from(smuggled) }),
      ]),
    );
    const frames = await framesUntil(secured, ({ type }) => type === frameTypes.reset);
    assert.ok(
      frames.every(({ type }) => type !== frameTypes.headers),
      'no response',
    );
    assert.deepEqual(received(), []);
    secured.destroy();
  });

  test('ends with its key, and within it every stream', async () => {
    const program = await newProgram();
    const session = await sessionOf(program);
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    destination.behave(({ response }) => {
      response.writeHead(200).write('x');
      resolve();
    });
    const idle = await sessionOf(program);
    const stream = session.request({ ':path': '/v1/x' });
    stream.on('error', () => undefined);
    await begun;
    const { body } = await program.tenant.send('GET', '/applications/key', { key: program.key });
    await program.tenant.send('DELETE', `/applications/${body.id}`, {
      key: program.tenant.managementKey,
    });
    const ended = [once(session, 'close'), once(idle, 'close'), once(stream, 'close')];
    vault.clock.advance(1_000);
    await Promise.all(ended);
  });

  test('ends with its policy', async () => {
    const program = await newProgram();
    const session = await sessionOf(program);
    const { body } = await program.tenant.send('GET', '/applications/key', { key: program.key });
    const other = { ...policy, host: 'other.example' };
    const { status, text } = await program.tenant.send('PUT', `/applications/${body.id}`, {
      key: program.tenant.managementKey,
      body: { name: 'x', permissions: ['proxy:invoke'], egress: [other] },
    });
    assert.equal(status, 200, text);
    const ended = once(session, 'close');
    vault.clock.advance(1_000);
    await ended;
  });

  test('ends where streams are reset as soon as they begin, and others go on', async () => {
    const program = await newProgram();
    destination.behave(({ response }) => void response.end('fine'));
    const other = await sessionOf(program);
    const secured = await secureFor(program);
    const head = getHead();
    const code = Buffer.from([0, 0, 0, 8]);
    secured.write(preface);
    for (let stream = 1; stream < 20_000; stream += 2) {
      secured.write(
        Buffer.concat([
          frame({ type: 'headers', flags: endHeaders + endStream, stream, payload: head }),
          frame({ type: 'reset', stream, payload: code }),
        ]),
      );
    }
    await framesUntil(secured);
    assert.ok(secured.destroyed);
    assert.equal((await send(other, {})).text, 'fine');
    other.close();
  });

  test('refuses streams beyond those that it offers, and ends with a client that goes on', async () => {
    const program = await newProgram();
    destination.behave(() => undefined);
    const secured = await secureFor(program);
    const payload = block([':method', 'POST'], ...place, ['content-type', 'text/plain']);
    secured.write(preface);
    for (let stream = 1; stream < 20_000; stream += 2)
      secured.write(frame({ type: 'headers', flags: endHeaders, stream, payload }));
    const frames = await framesUntil(secured);
    assert.ok(frames.filter(({ type }) => type === frameTypes.reset).length <= 200);
    assert.ok(secured.destroyed);
  });

  for (const [what, flood] of Object.entries({
    pings: frame({ type: 'ping', payload: Buffer.alloc(8) }),
    settings: frame({ type: 'settings' }),
    windows: frame({ type: 'windowUpdate', payload: Buffer.from([0, 0, 0, 1]) }),
  })) {
    test(`ends with a flood of ${what}, also beside a request`, async () => {
      const secured = await secureFor(await newProgram());
      destination.behave(() => undefined);
      const flags = endHeaders + endStream;
      secured.write(
        Buffer.concat([preface, frame({ type: 'headers', flags, stream: 1, payload: getHead() })]),
      );
      const many = Buffer.concat(new Array(1_000).fill(flood));
      const reading = framesUntil(secured);
      const flooding = setInterval(() => secured.write(many), 1);
      await reading;
      clearInterval(flooding);
    });
  }

  for (const [what, payload, others] of [
    ['a list of headers that is too long', getHead(...many(120, 'x'.repeat(120))), 0],
    ['more headers than it takes', getHead(...many(200, '')), 0],
    ['a list that grows when it is unpacked', bomb(), 0],
    ['continuations without an end', getHead(), 100],
  ] as const) {
    test(`refuses ${what}`, async () => {
      const secured = await secureFor(await newProgram());
      received();
      const flags = (others === 0 ? endHeaders : 0) + endStream;
      const more = frame({ type: 'continuation', stream: 1, payload: block(['x', 'y']) });
      secured.write(
        Buffer.concat([
          preface,
          frame({ type: 'headers', flags, stream: 1, payload }),
          ...new Array(others).fill(more),
        ]),
      );
      const [last] = (await framesUntil(secured, ({ type }) => [1, 3, 7].includes(type))).slice(-1);
      const isRefusal = (payload: Buffer) =>
        payload[0] === 0x8c || payload.toString('latin1', 2, 5) === '431';
      assert.ok(
        last === undefined || last.type !== 1 || isRefusal(last.payload),
        JSON.stringify(last),
      );
      assert.deepEqual(received(), []);
      secured.destroy();
    });
  }
});

/** So many headers. */
function many(count: number, value: string) {
  return Array.from({ length: count }, (_, at) => [`x-${at}`, value] as const);
}

/** A header in the table of the compression, and references to it of one byte each (RFC 7541, section 6.1). */
function bomb(): Buffer {
  const value = Buffer.alloc(3_000, 'x');
  const length = Buffer.from([0x7f, 0xb9, 0x16]);
  const indexed = Buffer.concat([Buffer.from([0x40, 1]), Buffer.from('x'), length, value]);
  return Buffer.concat([getHead(), indexed, Buffer.alloc(5_000, 0xbe)]);
}
