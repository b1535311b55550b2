/** WebSockets through the forward proxy: opened as any request is sent, and no value comes back in a message. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http, { type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { Duplex, Readable } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { after, suite, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { AdmittedEntrant } from '../../src/base/admission.ts';
import { connectTo, secure, startEgress } from '../support/egress.ts';
import { nextLook, untilSo } from '../support/poll.ts';
import { headerOf } from '../support/proxy-calls.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { accept, frame, framesOf, handshakeKey, type ReadFrame } from '../support/websocket.ts';

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
  methods: ['GET'],
  paths: ['/v1/*'],
  tokens: ['api-key'],
  places: ['header:authorization', 'header:sec-websocket-protocol'],
  websocket: true,
};

interface Program {
  readonly tenant: TestTenant;
  readonly key: string;
  readonly ca: string;
  readonly placeholder: string;
}

async function newProgram(egress: object = policy, data: string = secret): Promise<Program> {
  const tenant = await newTenant(vault);
  await tenant.token({ id: 'api-key', type: 'token', data });
  const key = await tenant.application({ permissions: ['proxy:invoke'], egress: [egress] });
  const { body } = await tenant.send('GET', '/egress/authority', { key });
  const made = await tenant.send('POST', '/placeholders', { key, body: { token_id: 'api-key' } });
  return { tenant, key, ca: body.certificate, placeholder: made.body.placeholder };
}

interface Opening {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Opened {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly socket: Duplex;
}

/** The response to a handshake that has the placeholder, unless given otherwise. */
async function openOn(
  secured: TLSSocket,
  { placeholder }: Program,
  { path = '/v1/live', headers }: Opening = {},
): Promise<Opened> {
  const request = http.request({
    path,
    headers: {
      ...{ host: authority, connection: 'Upgrade', upgrade: 'websocket' },
      'sec-websocket-key': handshakeKey,
      'sec-websocket-version': '13',
      'sec-websocket-extensions': 'permessage-deflate',
      authorization: `Bearer ${placeholder}`,
      ...headers,
    },
    createConnection: () => secured,
  });
  request.end();
  const [response, head] = await Promise.race([
    once(request, 'upgrade').then(([one, , bytes]) => [one, bytes] as const),
    once(request, 'response').then(([one]) => [one, undefined] as const),
  ]);
  const { statusCode: status = 0, headers: sent } = response as IncomingMessage;
  if (head?.length > 0) secured.unshift(head);
  let text = '';
  if (status !== 101) for await (const chunk of response) text += chunk;
  return { status, headers: sent, text, socket: secured };
}

async function open(program: Program, opening?: Opening): Promise<Opened> {
  const { socket } = await connectTo(lender, { port, authority, key: program.key });
  return openOn(await secure(socket, program.ca), program, opening);
}

/** A host that sends back each message that it gets, after these. */
function greet(...frames: readonly Buffer[]) {
  const asked: IncomingMessage[] = [];
  destination.upgrade((request, socket) => {
    asked.push(request);
    socket.on('error', () => undefined);
    accept(request, socket);
    for (const one of frames) socket.write(one);
    void (async () => {
      for await (const { opcode, payload } of framesOf(socket)) {
        socket.write(frame({ opcode, payload }));
        if (opcode === 8) break;
      }
      socket.end();
    })().catch(() => undefined);
  });
  return asked;
}

async function take(frames: AsyncIterator<ReadFrame>, count: number): Promise<ReadFrame[]> {
  const taken: ReadFrame[] = [];
  while (taken.length < count) {
    const { value, done } = await frames.next();
    assert.ok(!done, `the connection ended after ${taken.length} frames`);
    taken.push(value);
  }
  return taken;
}

const shown = ({ opcode, payload }: ReadFrame) => `${opcode} ${payload.toString()}`;
const wholeOf = (frames: readonly ReadFrame[]) =>
  Buffer.concat(frames.map(({ payload }) => payload)).toString();

suite('a WebSocket through the forward proxy', () => {
  test('has its value in the handshake, its entry before it, and messages in both directions', async () => {
    const program = await newProgram();
    const asked = greet();
    const { status, headers, socket } = await open(program);
    assert.equal(status, 101);
    assert.equal(headers['sec-websocket-extensions'], undefined);
    const [sent] = asked;
    assert.equal(headerOf(sent?.rawHeaders ?? [], 'authorization'), `Bearer ${secret}`);
    assert.equal(headerOf(sent?.rawHeaders ?? [], 'sec-websocket-extensions'), undefined);
    assert.equal(headerOf(sent?.rawHeaders ?? [], 'proxy-authorization'), undefined);
    const frames = framesOf(socket);
    for (const payload of ['one', 'x'.repeat(126), 'y'.repeat(70_000), '']) {
      socket.write(frame({ payload, masked: true }));
      const parts = [];
      do parts.push(...(await take(frames, 1)));
      while (!parts.at(-1)?.final);
      assert.equal(wholeOf(parts), payload);
      assert.equal(parts[0]?.opcode, 1);
      assert.ok(parts.slice(1).every(({ opcode }) => opcode === 0));
    }
    socket.write(frame({ opcode: 9, payload: 'ping', masked: true }));
    assert.deepEqual((await take(frames, 1)).map(shown), ['9 ping']);
    socket.write(frame({ payload: program.placeholder, masked: true }));
    assert.deepEqual((await take(frames, 1)).map(shown), [`1 ${program.placeholder}`]);
    const messages = (await program.tenant.rows('logs')).map(({ message }) => message);
    assert.ok(messages.some((one) => /GET to localhost:\d+, proxy egress/.test(one)));
    socket.end(frame({ opcode: 8, masked: true }));
    assert.equal((await frames.next()).value?.opcode, 8);
    assert.equal((await frames.next()).done, true);
  });

  test('shows no value in a message, across frames, beside pings, or in the reason of its end', async () => {
    const program = await newProgram();
    const middle = Math.floor(secret.length / 2);
    const code = Buffer.from([3, 0xe8]);
    greet(
      frame({ payload: `key ${secret}` }),
      frame({ opcode: 2, payload: Buffer.from(secret).toString('base64') }),
      frame({ payload: secret.slice(0, middle), final: false }),
      frame({ opcode: 9, payload: secret }),
      frame({ opcode: 0, payload: '', final: false }),
      frame({ opcode: 0, payload: secret.slice(middle) }),
      ...Array.from(secret, (payload, at) =>
        frame({ opcode: at === 0 ? 1 : 0, payload, final: at === secret.length - 1 }),
      ),
      frame({ opcode: 10, payload: Buffer.from(secret).toString('hex') }),
      frame({ opcode: 8, payload: Buffer.concat([code, Buffer.from(secret)]) }),
    );
    const { socket } = await open(program);
    const frames: ReadFrame[] = [];
    for await (const one of framesOf(socket)) {
      frames.push(one);
      if (one.opcode === 8) break;
    }
    const [first, second, ping, third, fourth, pong, close] = frames;
    assert.equal(frames.length, 7, frames.map(shown).join('\n'));
    assert.equal(first && shown(first), `1 key ${stars}`);
    assert.match(second?.payload.toString() ?? '', /^\*+$/);
    assert.equal(ping && shown(ping), `9 ${stars}`);
    assert.equal(third && shown(third), `1 ${stars}`);
    assert.equal(fourth && shown(fourth), `1 ${stars}`);
    assert.match(pong?.payload.toString() ?? '', /^\*+$/);
    assert.deepEqual(close?.payload, Buffer.concat([code, Buffer.from(stars)]));
    for (;;) {
      const found = (await program.tenant.rows('logs')).find(
        ({ operation }) => operation === 'scrub',
      );
      if (found) {
        assert.match(found.message ?? '', /GET, 7 in the response of localhost/);
        break;
      }
      await nextLook();
    }
  });

  test('shows no value at any border of packets, or within a message of any length', async () => {
    const program = await newProgram();
    const filler = 'f'.repeat(100_000);
    const long = frame({ payload: `${filler}${secret}${filler}${secret}` });
    const short = frame({ payload: `"${secret}"` });
    const cuts = Array.from({ length: 6 }, (_, at) => short.subarray(at * 5, (at + 1) * 5));
    destination.upgrade((request, socket) => {
      accept(request, socket);
      socket.on('error', () => undefined);
      void (async () => {
        for (const one of [...cuts, long]) {
          await new Promise((done) => socket.write(one, done));
          await nextLook();
        }
      })();
    });
    const { socket } = await open(program);
    const frames = framesOf(socket);
    assert.deepEqual((await take(frames, 1)).map(shown), [`1 "${stars}"`]);
    const parts: ReadFrame[] = [];
    do parts.push(...(await take(frames, 1)));
    while (!parts.at(-1)?.final);
    assert.equal(wholeOf(parts), `${filler}${stars}${filler}${stars}`);
    socket.destroy();
  });

  test('shows no value in the headers with which it begins, or in the response in its place', async () => {
    const program = await newProgram();
    const headers = { 'sec-websocket-protocol': `live, key.${program.placeholder}` };
    destination.upgrade((request, socket) => {
      const protocol = String(request.headers['sec-websocket-protocol']);
      accept(request, socket, { 'sec-websocket-protocol': protocol, 'x-echo': protocol });
    });
    const opened = await open(program, { headers });
    assert.equal(opened.status, 101);
    assert.equal(opened.headers['sec-websocket-protocol'], `live, key.${stars}`);
    assert.equal(opened.headers['x-echo'], `live, key.${stars}`);
    opened.socket.destroy();
    destination.upgrade((request, socket) => {
      const text = `no ${request.headers.authorization}`;
      socket.end(`HTTP/1.1 403 No\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
    });
    const { socket, ...refused } = await open(program);
    assert.equal(refused.status, 403);
    assert.equal(refused.text, `no Bearer ${stars}`);
    if (!socket.closed) await once(socket.resume(), 'close');
  });

  const lies: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'another key': { 'sec-websocket-accept': handshakeKey },
    'another protocol': { upgrade: 'h2c' },
    'an extension': { 'sec-websocket-extensions': 'permessage-deflate' },
  };
  for (const [what, added] of Object.entries(lies)) {
    test(`502: a host that accepts with ${what} gets nothing more, and sends nothing back`, async () => {
      const program = await newProgram();
      const closed = Promise.withResolvers<void>();
      let got = '';
      destination.upgrade((request, socket) => {
        socket.on('error', () => undefined).on('close', () => closed.resolve());
        socket.on('data', (chunk) => {
          got += chunk;
        });
        accept(request, socket, added);
        socket.write(frame({ payload: secret }));
      });
      const { status, text } = await open(program);
      assert.equal(status, 502, text);
      assert.ok(!text.includes(secret));
      await closed.promise;
      assert.equal(got, '');
    });
  }

  const wrong: Readonly<Record<string, Buffer>> = {
    'an extension in it': frame({ payload: secret, reserved: 0x40 }),
    'a mask': frame({ payload: secret, masked: true }),
    'an unknown opcode': frame({ opcode: 3, payload: secret }),
    'a continuation of nothing': frame({ opcode: 0, payload: secret }),
    'a ping that is too long': frame({ opcode: 9, payload: secret.repeat(6) }),
    'a ping in parts': frame({ opcode: 9, payload: secret, final: false }),
    'a length beyond all numbers': Buffer.concat([
      Buffer.from([0x81, 127]),
      Buffer.alloc(8, 0xff),
      Buffer.from(secret),
    ]),
  };
  for (const [what, bytes] of Object.entries(wrong)) {
    test(`ends with a frame of the host that has ${what}`, async () => {
      const program = await newProgram();
      greet(bytes);
      const { socket } = await open(program);
      let text = '';
      for await (const chunk of socket) text += chunk;
      assert.equal(text, '');
    });
  }

  test('ends with what the program sends that is no frame, and none of it reaches the host', async () => {
    const program = await newProgram({ ...policy, tokens: undefined, places: undefined });
    const smuggled = `GET /v2/admin HTTP/1.1\r\nHost: ${authority}\r\n\r\n`;
    for (const bytes of [Buffer.from(smuggled), frame({ payload: smuggled })]) {
      const closed = Promise.withResolvers<void>();
      let got = '';
      destination.upgrade((request, socket) => {
        socket.on('error', () => undefined).on('close', () => closed.resolve());
        socket.on('data', (chunk) => {
          got += chunk;
        });
        accept(request, socket);
      });
      const { socket } = await open(program, { headers: { authorization: 'none' } });
      socket.write(bytes);
      await closed.promise;
      assert.equal(got, '');
      if (!socket.closed) await once(socket.resume(), 'close');
    }
  });

  test('403, and nothing is sent: where the policy has none, elsewhere, or with a placeholder elsewhere', async () => {
    const { websocket: _, ...without } = policy;
    const none = await newProgram(without);
    const program = await newProgram();
    const asked = greet();
    const attempts: [Program, Opening][] = [
      [none, {}],
      [program, { path: '/v2/live' }],
      [program, { path: `/v1/live?key=${program.placeholder}` }],
      [program, { headers: { 'x-other': program.placeholder } }],
      [program, { headers: { authorization: `Bearer ${none.placeholder}` } }],
    ];
    for (const [from, opening] of attempts) {
      const { status, text, socket } = await open(from, opening);
      assert.equal(status, 403, text);
      if (!socket.closed) await once(socket.resume(), 'close');
    }
    assert.deepEqual(asked, []);
  });

  test('403, and nothing is sent: a value that messages could be used to guess', async () => {
    const asked = greet();
    for (const data of ['4242 4242 4242 4242', '0123456789012345678901', 'fifteen letters']) {
      const { status, text, socket } = await open(await newProgram(policy, data));
      assert.equal(status, 403, text);
      assert.match(text, /used to guess it/);
      if (!socket.closed) await once(socket.resume(), 'close');
    }
    assert.deepEqual(asked, []);
  });

  test('what follows a handshake before its response ends the connection, and nothing is sent', async () => {
    const program = await newProgram({ ...policy, approval: 'always' });
    const asked = greet();
    const handshake = [
      ...['GET /v1/live HTTP/1.1', `Host: ${authority}`, 'Connection: Upgrade'],
      ...['Upgrade: websocket', 'Sec-WebSocket-Version: 13', `Sec-WebSocket-Key: ${handshakeKey}`],
      `Authorization: Bearer ${program.placeholder}`,
    ];
    const text = `${handshake.join('\r\n')}\r\n\r\n`;
    const smuggled = `GET /v2/admin HTTP/1.1\r\nHost: ${authority}\r\n\r\n`;
    const { managementKey: key } = program.tenant;
    const waiting = async () =>
      (await program.tenant.send('GET', '/approvals?status=waiting', { key })).body.data.length;
    for (const isTogether of [true, false]) {
      const { socket } = await connectTo(lender, { port, authority, key: program.key });
      const secured = await secure(socket, program.ca);
      secured.on('error', () => undefined).resume();
      const closed = once(secured, 'close');
      if (isTogether) secured.write(text + smuggled);
      else {
        secured.write(text);
        await untilSo(
          async () => (await waiting()) === 1,
          () => 'nothing waits',
        );
        secured.write(frame({ payload: smuggled, masked: true }));
      }
      await closed;
      await untilSo(
        async () => (await waiting()) === 0,
        () => 'it still waits',
      );
    }
    assert.deepEqual(asked, []);
  });

  test('a request that is no handshake is sent as any other', async () => {
    const program = await newProgram();
    const asked = greet();
    destination.behave(async ({ response, received }) => {
      await received;
      response.writeHead(426).end();
    });
    for (const headers of [
      { upgrade: 'h2c' },
      { 'sec-websocket-version': '8' },
      { 'sec-websocket-key': 'short' },
    ]) {
      assert.equal((await open(program, { headers })).status, 426, JSON.stringify(headers));
    }
    assert.deepEqual(asked, []);
  });

  test('a handshake before the response to another request is refused', async () => {
    const program = await newProgram();
    const asked = greet();
    const begun = Promise.withResolvers<void>();
    destination.behave(() => begun.resolve());
    const { socket } = await connectTo(lender, { port, authority, key: program.key });
    const secured = await secure(socket, program.ca);
    secured.on('error', () => undefined);
    secured.write(`GET /v1/slow HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    await begun.promise;
    secured.write(
      `GET /v1/live HTTP/1.1\r\nHost: ${authority}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Key: ${handshakeKey}\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    );
    await once(secured.resume(), 'close');
    assert.deepEqual(asked, []);
    assert.equal((await open(program)).status, 101);
  });

  const endings: Readonly<Record<string, (program: Program, id: string) => Promise<unknown>>> = {
    'its key is deleted': ({ tenant, key }, id) =>
      tenant.send('DELETE', `/applications/${id}`, { key: tenant.managementKey }).then(() => key),
    'its policy is taken away': ({ tenant }, id) => change(tenant, id, null),
    'its policy has no WebSocket any more': ({ tenant }, id) =>
      change(tenant, id, [{ ...policy, websocket: false }]),
    'its policy sends no values any more': ({ tenant }, id) =>
      change(tenant, id, [{ ...policy, tokens: undefined, places: undefined }]),
  };
  const change = (tenant: TestTenant, id: string, egress: unknown) =>
    tenant.send('PUT', `/applications/${id}`, {
      key: tenant.managementKey,
      body: { name: 'x', permissions: ['proxy:invoke'], egress },
    });
  for (const [what, end] of Object.entries(endings)) {
    test(`an open one ends when ${what}, at both ends`, async () => {
      const program = await newProgram();
      const closed = Promise.withResolvers<void>();
      destination.upgrade((request, socket) => {
        socket.on('error', () => undefined).on('close', () => closed.resolve());
        accept(request, socket);
      });
      const { socket } = await open(program);
      const { body } = await program.tenant.send('GET', '/applications/key', { key: program.key });
      await end(program, body.id);
      vault.clock.advance(1_000);
      await once(socket.resume(), 'close');
      await closed.promise;
    });
  }

  test('a host that ends takes the connection of the program with it, and the other way around', async () => {
    const program = await newProgram();
    const hosts: Duplex[] = [];
    destination.upgrade((request, socket) => {
      socket.on('error', () => undefined);
      hosts.push(socket);
      accept(request, socket);
    });
    const one = await open(program);
    hosts[0]?.destroy();
    await once(one.socket.resume(), 'close');
    const two = await open(program);
    const closed = once(hosts[1]?.resume() as Duplex, 'close');
    two.socket.destroy();
    await closed;
  });

  test('each counts as a call of its policy, and its messages do not', async () => {
    const program = await newProgram({ ...policy, calls: { per_hour: 2 } });
    greet();
    const { socket } = await open(program);
    const frames = framesOf(socket);
    for (let count = 0; count < 1_000; count += 1)
      socket.write(frame({ payload: String(count), masked: true }));
    const taken = await take(frames, 1_000);
    assert.deepEqual(
      taken.map(({ payload }) => Number(payload)),
      Array.from({ length: 1_000 }, (_, at) => at),
    );
    assert.equal((await open(program)).status, 101);
    assert.equal((await open(program)).status, 429);
  });

  test('what is sent in one waits for its turns, in both directions', async (t) => {
    const bytes = 2_097_152;
    const payload = Buffer.alloc(bytes, 'x');
    const got = Promise.withResolvers<void>();
    destination.upgrade((request, socket) => {
      socket.on('error', () => undefined);
      accept(request, socket);
      void (async () => {
        for await (const { opcode } of framesOf(socket)) {
          if (opcode === 1) got.resolve();
          else socket.write(frame({ payload }));
        }
      })().catch(() => undefined);
    });
    const { socket } = await open(await newProgram());
    const turns = t.mock.method(AdmittedEntrant.prototype, 'next').mock;
    socket.write(frame({ payload, masked: true }));
    await got.promise;
    assert.ok(turns.callCount() >= 10, `${turns.callCount()} turns`);
    turns.resetCalls();
    socket.write(frame({ opcode: 2, masked: true }));
    const frames = framesOf(socket);
    while (!(await take(frames, 1))[0]?.final);
    assert.ok(turns.callCount() >= 10, `${turns.callCount()} turns`);
    socket.destroy();
  });

  test('a connection that had requests before may become one', async () => {
    const program = await newProgram();
    greet(frame({ payload: secret }));
    destination.behave(async ({ response, received }) => {
      await received;
      response.end('ok');
    });
    const { socket } = await connectTo(lender, { port, authority, key: program.key });
    const secured = await secure(socket, program.ca);
    secured.write(`GET /v1/x HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    for (let text = ''; !text.endsWith('ok'); text += String(secured.read() ?? ''))
      await once(secured, 'readable');
    const opened = await openOn(secured, program);
    assert.equal(opened.status, 101);
    assert.deepEqual((await take(framesOf(opened.socket), 1)).map(shown), [`1 ${stars}`]);
  });

  test('waits for a person where its policy says so, and is not opened once its program has left', async () => {
    const program = await newProgram({ ...policy, approval: 'always' });
    const { managementKey: key } = program.tenant;
    const listed = async (status: string) =>
      (await program.tenant.send('GET', `/approvals?status=${status}`, { key })).body.data;
    const waiting = async () => {
      await untilSo(
        async () => (await listed('waiting')).length === 1,
        () => 'nothing waits',
      );
      return (await listed('waiting'))[0].id;
    };
    const asked = greet(frame({ payload: secret }));
    const { socket } = await connectTo(lender, { port, authority, key: program.key });
    const left = openOn(await secure(socket, program.ca), program).catch(() => undefined);
    await waiting();
    socket.destroy();
    await left;
    await untilSo(
      async () => (await listed('waiting')).length === 0,
      () => 'it still waits',
    );
    assert.deepEqual(asked, []);
    const opening = open(program);
    await program.tenant.send('POST', `/approvals/${await waiting()}/approve`, { key });
    const opened = await opening;
    assert.equal(opened.status, 101);
    assert.deepEqual((await take(framesOf(opened.socket), 1)).map(shown), [`1 ${stars}`]);
  });

  test('does not hold a stop of the vault', async (t) => {
    const { called: other, vault: stopped } = await startEgress(t);
    const tenant = await newTenant(stopped);
    const egress = [{ host: 'localhost', port: other.destination.port, websocket: true }];
    const to = `localhost:${other.destination.port}`;
    const key = await tenant.application({ permissions: ['proxy:invoke'], egress });
    const { body } = await tenant.send('GET', '/egress/authority', { key });
    other.destination.upgrade((request, host) =>
      accept(
        request,
        host.on('error', () => undefined),
      ),
    );
    const place = Number(new URL(stopped.running.egressUrl ?? '').port);
    const { socket } = await connectTo(t, { port: place, authority: to, key });
    const secured = await secure(socket, body.certificate);
    const headers = { host: to, authorization: 'none' };
    const program = { tenant, key, ca: body.certificate, placeholder: '' };
    assert.equal((await openOn(secured, program, { headers })).status, 101);
    const closed = once(secured.resume(), 'close');
    await stopped.stop();
    await closed;
  });

  test('tools open none', async () => {
    const program = await newProgram();
    const asked = greet();
    const { status } = await program.tenant.send('POST', '/mcp', {
      key: program.key,
      headers: { accept: 'application/json, text/event-stream' },
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'http_request',
          arguments: {
            method: 'GET',
            url: `https://${authority}/v1/live`,
            headers: { Connection: 'Upgrade', Upgrade: 'websocket' },
          },
        },
      },
    });
    assert.equal(status, 200);
    assert.deepEqual(asked, []);
  });

  test('the client of Node keeps its code, and its settings alone lead it through the vault', async (t) => {
    const program = await newProgram();
    greet(frame({ payload: `you are ${secret}` }));
    const file = join(temporaryDirectory(t), 'authority.pem');
    writeFileSync(file, program.ca);
    const code = `
      const socket = new WebSocket('wss://${authority}/v1/live', {
        headers: { authorization: 'Bearer ${program.placeholder}' },
      });
      socket.onopen = () => socket.send('hello');
      socket.onmessage = ({ data }) => {
        console.log(data);
        if (data === 'hello') socket.close(1000, 'done');
      };
      socket.onclose = ({ code, wasClean }) => console.log(code, wasClean);
    `;
    const child = execFile(process.execPath, ['-e', code], {
      env: {
        NODE_USE_ENV_PROXY: '1',
        NODE_EXTRA_CA_CERTS: file,
        HTTPS_PROXY: `http://agent:${program.key}@127.0.0.1:${port}`,
      },
    });
    const [out] = await Promise.all([textOf(child.stdout as Readable), once(child, 'close')]);
    assert.equal(out, `you are ${stars}\nhello\n1000 true\n`);
  });
});
