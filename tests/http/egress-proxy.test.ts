/** The forward proxy: a program's values reach the host of their policy, nothing else does, and none comes back. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http, { type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { after, suite, test } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { AdmittedEntrant } from '../../src/base/admission.ts';
import {
  basic,
  connectTo as openConnection,
  type Sending,
  secure,
  sendOn as sendThrough,
  startEgress,
} from '../support/egress.ts';
import { engineOf } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import { headerOf } from '../support/proxy-calls.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const ends: (() => unknown)[] = [];
const lender = { after: (end: () => unknown) => void ends.unshift(end) };
after(async () => {
  for (const end of ends) await end();
});

const { called, vault } = await startEgress(lender);
const { destination } = called;
const proxyPort = Number(new URL(vault.running.egressUrl ?? '').port);
const visa = '4242424242424242';
const apiKey = 'secret/Key+with "quotes" and 漢字';

const policy = {
  host: 'localhost',
  port: destination.port,
  methods: ['GET', 'POST'],
  paths: ['/v1/*'],
  tokens: ['card', 'api-key'],
  places: ['header:authorization', 'json:card.number', 'json:items.*.key', 'form:card[number]'],
};

interface Program {
  readonly tenant: TestTenant;
  readonly key: string;
  readonly ca: string;
  readonly number: string;
  readonly secret: string;
}

async function programOf(tenant: TestTenant, egress: object = policy): Promise<Program> {
  const key = await tenant.application({ permissions: ['proxy:invoke'], egress: [egress] });
  const make = async (body: object) =>
    (await tenant.send('POST', '/placeholders', { key, body })).body.placeholder as string;
  const { body } = await tenant.send('GET', '/egress/authority', { key });
  return {
    tenant,
    key,
    ca: body.certificate,
    number: await make({ token_id: 'card', property: 'number' }),
    secret: await make({ token_id: 'api-key' }),
  };
}

async function newProgram(egress?: object): Promise<Program> {
  const tenant = await newTenant(vault);
  const data = { number: visa, expiration_month: 12, expiration_year: 2030 };
  await tenant.token({ id: 'card', type: 'card', data });
  await tenant.token({ id: 'api-key', type: 'token', data: 'plain-api-key-0123456789' });
  return programOf(tenant, egress);
}

const connectTo = (authority: string, key: string | undefined, port = proxyPort) =>
  openConnection(lender, { port, authority, key });

const authority = `localhost:${destination.port}`;

async function send(program: Pick<Program, 'key' | 'ca'>, sending: Sending) {
  const { socket } = await connectTo(authority, program.key);
  return sendOn(await secure(socket, program.ca), sending);
}

const sendOn = (secured: TLSSocket, sending: Sending) => sendThrough(secured, authority, sending);

const json = { 'content-type': 'application/json' };
const form = { 'content-type': 'application/x-www-form-urlencoded' };

/** Sends back what it gets, as a stranger's echo endpoint does. */
function echo(
  encode: (
    body: Buffer,
    headers: readonly string[],
  ) => { headers?: http.OutgoingHttpHeaders; body: Buffer | string },
) {
  destination.behave(async ({ response, received }) => {
    const { body, headers } = await received;
    const made = encode(body, headers);
    response.writeHead(200, made.headers ?? {}).end(made.body);
  });
}

const received = () => destination.requests.splice(0);

async function untilLogged(tenant: TestTenant, operation: string) {
  for (;;) {
    const found = (await tenant.rows('logs')).filter((entry) => entry.operation === operation);
    if (found.length > 0) return found;
    await nextLook();
  }
}

suite('the forward proxy', () => {
  test('puts values where the policy says, into headers, JSON, forms, and encoded user names', async () => {
    const program = await newProgram();
    destination.behave(async ({ response, received: all }) => {
      await all;
      response.end('ok');
    });
    const body = JSON.stringify(
      { card: { number: program.number, note: 'x' }, items: [{ key: program.secret }] },
      null,
      1,
    );
    const first = await send(program, {
      headers: { ...json, authorization: `Bearer ${program.secret}` },
      body,
    });
    assert.equal(first.status, 200, first.text);
    const form = `a=1&card%5Bnumber%5D=${program.number}`;
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    const user = `Basic ${Buffer.from(`${program.secret}:`).toString('base64')}`;
    assert.equal(
      (await send(program, { headers: { ...type, authorization: user }, body: form })).status,
      200,
    );
    const [one, two] = received();
    assert.equal(
      one?.body.toString(),
      body.replace(program.number, visa).replace(program.secret, 'plain-api-key-0123456789'),
    );
    assert.equal(headerOf(one?.headers ?? [], 'authorization'), 'Bearer plain-api-key-0123456789');
    assert.equal(headerOf(one?.headers ?? [], 'proxy-authorization'), undefined);
    assert.equal(two?.body.toString(), `a=1&card%5Bnumber%5D=${visa}`);
    const expected = `Basic ${Buffer.from('plain-api-key-0123456789:').toString('base64')}`;
    assert.equal(headerOf(two?.headers ?? [], 'authorization'), expected);
    const used = (await program.tenant.rows('logs')).filter(({ disclosure }) =>
      disclosure?.startsWith('r'),
    );
    assert.deepEqual(new Set(used.map(({ entity_id }) => entity_id)), new Set(['card', 'api-key']));
    assert.match(used[0]?.message ?? '', /POST to localhost:\d+, proxy egress/);
  });

  test('sends nothing for a placeholder elsewhere, of another application, altered, or ended', async () => {
    const program = await newProgram();
    const other = await programOf(program.tenant);
    const stranger = await newProgram();
    const { key } = program;
    const later = new Date(vault.clock.now() + 60_000).toISOString();
    const brief = await program.tenant.send('POST', '/placeholders', {
      key,
      body: { token_id: 'card', property: 'number', expires_at: later },
    });
    vault.clock.advance(60_001);
    received();
    const card = (number: string) => JSON.stringify({ card: { number } });
    const attempts: Sending[] = [
      { path: `/v1/${program.number}` },
      { path: `/v1/x?a=${program.number}` },
      { headers: { 'x-other': program.number } },
      { headers: json, body: JSON.stringify({ note: program.number }) },
      { headers: json, body: JSON.stringify({ [program.number]: 1 }) },
      { headers: json, body: `{"card":{"number":"${program.number}"}} x` },
      { headers: json, body: JSON.stringify({ 'card.number': program.number }) },
      { headers: form, body: `card[number]=1;other=${program.number}` },
      { headers: json, body: card(`16 characters … ${program.number}`) },
      { headers: json, body: card(`${program.number} ${program.number}`) },
      { headers: form, body: `card[number]=1+${program.number}` },
      { headers: json, body: card(other.number) },
      { headers: json, body: card(stranger.number) },
      { headers: json, body: card(brief.body.placeholder) },
      { headers: json, body: card(`${program.number.slice(0, -1)}1`) },
      {
        headers: {
          ...json,
          authorization: `Basic ${Buffer.from(`${other.secret}:x`).toString('base64')}`,
        },
      },
    ];
    for (const attempt of attempts) {
      const { status, text } = await send(program, attempt);
      assert.equal(status, 403, JSON.stringify(attempt));
      assert.match(text, /urn:strongroom:problem:forbidden/);
      assert.ok(!text.includes(visa));
    }
    assert.deepEqual(received(), []);
  });

  test('sends nothing to a path, a method, or a host that no policy has, nor to another by SNI or Host', async () => {
    const program = await newProgram();
    received();
    for (const attempt of [{ path: '/v2/x' }, { method: 'PUT' }]) {
      assert.equal((await send(program, attempt)).status, 403);
    }
    for (const host of [
      'example.com:443',
      'localhost:443',
      '127.0.0.1:1',
      '[::1]:1',
      'localhost',
    ]) {
      const { status, body } = await connectTo(host, program.key);
      assert.ok(status === 403 || status === 400, `${host}: ${status}`);
      assert.match(body, /urn:strongroom:problem/);
    }
    const { socket } = await connectTo(authority, program.key);
    await assert.rejects(secure(socket, program.ca, 'evil.example'));
    const fronted = await send(program, { headers: { host: 'evil.example' } });
    assert.equal(fronted.status, 400, fronted.text);
    assert.deepEqual(received(), []);
    assert.ok((await program.tenant.logged('proxy')).includes('invoke denied'));
  });

  test('a body of two types has no value, and no error names the token of a placeholder', async () => {
    const program = await newProgram();
    received();
    const body = JSON.stringify({ card: { number: program.number } });
    const { socket } = await connectTo(authority, program.key);
    const secured = await secure(socket, program.ca);
    const head = [
      'POST /v1/x HTTP/1.1',
      `Host: ${authority}`,
      'Content-Type: application/json',
      'Content-Type: application/x-www-form-urlencoded',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
    ];
    secured.write(`${head.join('\r\n')}\r\n\r\n${body}`);
    assert.match(await textOf(secured), /^HTTP\/1.1 400 .*Content-Type/s);
    await program.tenant.send('DELETE', '/tokens/api-key');
    const gone = await send(program, {
      headers: json,
      body: JSON.stringify({ items: [{ key: program.secret }] }),
    });
    assert.equal(gone.status, 400, gone.text);
    assert.match(gone.text, /does not exist any more/);
    assert.ok(!gone.text.includes('api-key'));
    assert.deepEqual(received(), []);
  });

  test('a response that unpacks to far more than it has is cut', async () => {
    const program = await newProgram();
    const packed = gzipSync(Buffer.alloc(8_388_608));
    echo(() => ({ body: packed, headers: { 'content-encoding': 'gzip' } }));
    const body = JSON.stringify({ card: { number: program.number } });
    await assert.rejects(send(program, { headers: json, body }));
    const text = Array.from({ length: 200_000 }, (_, at) => `line ${at}\n`).join('');
    echo(() => ({ body: gzipSync(text), headers: { 'content-encoding': 'gzip' } }));
    assert.equal((await send(program, { headers: json, body })).text, text);
  });

  test('a connection of TLS 1.2 is not negotiated again', async () => {
    const program = await newProgram();
    const { socket } = await connectTo(authority, program.key);
    const secured = connectTls({
      socket,
      ca: program.ca,
      servername: 'localhost',
      maxVersion: 'TLSv1.2',
    });
    await once(secured, 'secureConnect');
    const { promise, resolve } = Promise.withResolvers<string>();
    secured.on('error', (error) => resolve(error.message));
    secured.renegotiate({}, (error) => resolve(error ? error.message : 'renegotiated'));
    assert.match(await promise, /no renegotiation/i);
  });

  test('429: connections count against the limits of their key, whether or not anything is sent', async (t) => {
    const rules = join(temporaryDirectory(t), 'limits.json');
    const rule = { per: ['key'], key_kinds: ['private'], requests: 3, window_seconds: 60 };
    writeFileSync(rules, JSON.stringify({ limits: [rule] }));
    const limited = await startVault(t, engineOf('sqlite'), {
      environment: {
        ...called.environment,
        STRONGROOM_EGRESS_ADDRESS: '127.0.0.1:0',
        STRONGROOM_THREADS: '1',
        STRONGROOM_RATE_LIMITS: rules,
      },
    });
    const tenant = await newTenant(limited);
    const key = await tenant.application({ permissions: ['proxy:invoke'], egress: [policy] });
    const statuses: number[] = [];
    for (let count = 0; count < 5; count += 1) {
      const port = Number(new URL(limited.running.egressUrl ?? '').port);
      const { status, socket, body } = await connectTo(authority, key, port);
      socket.destroy();
      statuses.push(status);
      if (status === 429) assert.match(body, /too_many_requests/);
    }
    assert.deepEqual(statuses, [200, 200, 200, 429, 429]);
  });

  test('407: without a valid key there is no connection', async () => {
    const program = await newProgram();
    const altered = program.key.slice(0, -1) + (program.key.endsWith('0') ? '1' : '0');
    for (const key of [undefined, 'key_test_pvt_x', altered]) {
      const { status, headers, body } = await connectTo(authority, key);
      assert.equal(status, 407);
      assert.match(String(headers['proxy-authenticate']), /^Basic /);
      assert.match(body, /"status":407/);
    }
    const { status } = await connectTo(authority, program.tenant.managementKey);
    assert.equal(status, 403, 'a key that sends no values');
  });

  test('a connection that is open sends nothing once its key is deleted', async () => {
    const program = await newProgram();
    const { socket } = await connectTo(authority, program.key);
    const secured = await secure(socket, program.ca);
    const { body } = await program.tenant.send('GET', '/applications/key', { key: program.key });
    await program.tenant.send('DELETE', `/applications/${body.id}`, {
      key: program.tenant.managementKey,
    });
    vault.clock.advance(1_000);
    received();
    const { status } = await sendOn(secured, { method: 'GET' });
    assert.equal(status, 401);
    assert.deepEqual(received(), []);
  });

  test('all hosts of a wildcard have one certificate', async () => {
    const program = await newProgram({ ...policy, host: '*.a.localhost' });
    const serials = new Set<string>();
    for (const name of ['one', 'two']) {
      const host = `${name}.a.localhost`;
      const { socket } = await connectTo(`${host}:${destination.port}`, program.key);
      serials.add((await secure(socket, program.ca, host)).getPeerCertificate().serialNumber);
    }
    assert.equal(serials.size, 1);
  });

  test('a request that others would read in another way is refused, and nothing of it is sent', async () => {
    const program = await newProgram({ ...policy, paths: undefined });
    const { port } = destination;
    const smuggled = `POST /v1/b HTTP/1.1\r\nhost: ${authority}\r\ncontent-length: 0\r\n\r\n`;
    const head = `POST /v1/a HTTP/1.1\r\nhost: ${authority}\r\n`;
    const chunked = 'transfer-encoding: chunked\r\n';
    for (const [what, text] of Object.entries({
      'two lengths': `${head}content-length: 0\r\ncontent-length: 5\r\n\r\nhello`,
      'a length and chunks': `${head}content-length: 4\r\n${chunked}\r\n0\r\n\r\n${smuggled}`,
      'chunks of two kinds': `${head}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
      'chunks beside a tab': `${head}transfer-encoding:\tchunked\x0b\r\n\r\n0\r\n\r\n${smuggled}`,
      'a length with a sign': `${head}content-length: +5\r\n\r\nhello`,
      'a chunk with a sign': `${head}${chunked}\r\n+5\r\nhello\r\n0\r\n\r\n`,
      'two hosts': `${head}host: evil.example\r\n\r\n`,
      'a folded header': `${head}x-a: b\r\n content-length: 5\r\n\r\n`,
      'a bare line feed': `${head}x-a: b\nx-b: c\r\n\r\n`,
      'a space before a colon': `${head}content-length : 5\r\n\r\nhello`,
      'another host in the target': `GET https://evil.example:${port}/v1/a HTTP/1.1\r\nhost: ${authority}\r\n\r\n`,
      'no host': 'GET /v1/a HTTP/1.1\r\n\r\n',
    })) {
      const { socket } = await connectTo(authority, program.key);
      const secured = await secure(socket, program.ca);
      secured.on('error', () => undefined);
      const ended = once(secured, 'close');
      let response = '';
      secured.on('data', (chunk) => {
        response += chunk;
        secured.end();
      });
      secured.write(text);
      await ended;
      assert.match(response, /^HTTP\/1.1 4\d\d /, what);
      assert.deepEqual(
        received().map(({ url }) => url),
        [],
        what,
      );
    }
  });

  test('a connection that is open has no CONNECT within it', async () => {
    const program = await newProgram();
    const { socket } = await connectTo(authority, program.key);
    const secured = await secure(socket, program.ca);
    const request = http.request({
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, 'proxy-authorization': basic(program.key) },
      createConnection: () => secured,
    });
    request.end();
    const [response] = (await once(request, 'connect')) as [IncomingMessage];
    assert.equal(response.statusCode, 400);
  });

  test('deeply nested JSON is refused before other requests wait for it', async () => {
    const program = await newProgram();
    received();
    const deep = `${'['.repeat(8_000)}${'"",'.repeat(60_000)}"${program.number}"${']'.repeat(8_000)}`;
    const { status } = await send(program, { headers: json, body: deep });
    assert.equal(status, 403);
    const many = JSON.stringify({
      items: Array.from({ length: 101 }, () => ({ key: program.secret })),
    });
    assert.equal((await send(program, { headers: json, body: many })).status, 400);
    assert.deepEqual(received(), []);
  });

  test('sends no values that are too long to be looked for', async () => {
    const program = await newProgram();
    const { tenant, key } = program;
    await tenant.token({ id: 'long', type: 'token', data: 'x'.repeat(16_385) });
    const { body: own } = await tenant.send('GET', '/applications/key', { key });
    const update = {
      name: 'x',
      permissions: ['proxy:invoke'],
      egress: [{ ...policy, tokens: ['long'] }],
    };
    const path = `/applications/${own.id}`;
    await tenant.send('PUT', path, { key: tenant.managementKey, body: update });
    vault.clock.advance(1_000);
    const made = await tenant.send('POST', '/placeholders', { key, body: { token_id: 'long' } });
    received();
    const body = JSON.stringify({ card: { number: made.body.placeholder } });
    const { status, text } = await send(program, { headers: json, body });
    assert.equal(status, 400);
    assert.match(text, /more than 16384 bytes together/);
    assert.deepEqual(received(), []);
  });

  test('a request whose body comes slowly is held to the policies at its end', async () => {
    const program = await newProgram();
    const { tenant, key } = program;
    const { socket } = await connectTo(authority, key);
    const secured = await secure(socket, program.ca);
    const body = JSON.stringify({ card: { number: program.number } });
    const request = http.request({
      method: 'POST',
      path: '/v1/x',
      headers: { host: authority, ...json, 'content-length': body.length, expect: '100-continue' },
      createConnection: () => secured,
    });
    received();
    request.flushHeaders();
    await once(request, 'continue');
    const { body: own } = await tenant.send('GET', '/applications/key', { key });
    const update = {
      name: 'x',
      permissions: ['proxy:invoke'],
      egress: [{ ...policy, places: ['json:other'] }],
    };
    await tenant.send('PUT', `/applications/${own.id}`, {
      key: tenant.managementKey,
      body: update,
    });
    vault.clock.advance(1_000);
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    assert.equal(response.statusCode, 403);
    assert.deepEqual(received(), []);
  });

  test('no authority is given for policies none of whose connections is opened', async () => {
    const tenant = await newTenant(vault);
    const tunnel = { host: 'localhost', port: destination.port, tunnel: true };
    const key = await tenant.application({ permissions: ['proxy:invoke'], egress: [tunnel] });
    const { status, body } = await tenant.send('GET', '/egress/authority', { key });
    assert.equal(status, 409);
    assert.equal(body.certificate, undefined);
  });

  test('its certificate is trusted for the hosts of the policies and for no other', async () => {
    const program = await newProgram({ ...policy, host: 'other.example' });
    const opened = await programOf(program.tenant);
    const { socket } = await connectTo(authority, opened.key);
    await assert.rejects(secure(socket, program.ca), /permitted subtree/);
  });

  const encodings: Record<string, (value: string) => string> = {
    plain: (value) => value,
    JSON: (value) => JSON.stringify({ value }),
    URL: (value) => encodeURIComponent(value),
    hex: (value) => Buffer.from(value).toString('hex'),
    'base64, first alignment': (value) => Buffer.from(value).toString('base64'),
    'base64, second alignment': (value) => Buffer.from(`a${value}bc`).toString('base64'),
    'base64, third alignment': (value) => Buffer.from(`ab${value}c`).toString('base64'),
    base64url: (value) => Buffer.from(`?${value}`).toString('base64url'),
    groups: (value) => (value === visa ? (value.match(/.{4}/g) ?? []).join(' ') : value),
  };

  for (const [name, encode] of Object.entries(encodings)) {
    test(`takes a value out of a response in this encoding: ${name}`, async () => {
      const program = await newProgram();
      await program.tenant.token({ id: 'odd', type: 'token', data: apiKey });
      const odd = { ...policy, tokens: ['odd', 'card'], places: ['json:a', 'json:b'] };
      const holder = await program.tenant.application({
        permissions: ['proxy:invoke'],
        egress: [odd],
      });
      const make = async (body: object) =>
        (await program.tenant.send('POST', '/placeholders', { key: holder, body })).body
          .placeholder;
      const body = JSON.stringify({
        a: await make({ token_id: 'odd' }),
        b: await make({ token_id: 'card', property: 'number' }),
      });
      const leaks = [encode(apiKey), encode(visa)];
      echo(() => ({ body: `<${leaks.join('> <')}>`, headers: { 'x-echo': encode(visa) } }));
      const response = await send({ ...program, key: holder }, { headers: json, body });
      assert.equal(response.status, 200, response.text);
      const all = response.text + String(response.headers['x-echo']);
      for (const leak of leaks) assert.ok(!all.includes(leak), all);
      assert.equal(Buffer.byteLength(response.text), Buffer.byteLength(`<${leaks.join('> <')}>`));
      const [entry] = await untilLogged(program.tenant, 'scrub');
      assert.match(entry?.message ?? '', /3 in the response of localhost/);
    });
  }

  test('takes a value out at every border of chunks, out of trailers, and out of what is compressed', async () => {
    const program = await newProgram();
    const body = JSON.stringify({ card: { number: program.number } });
    destination.behave(async ({ response, received: all }) => {
      await all;
      response.writeHead(200, { trailer: 'x-last' });
      for (const character of `begin ${visa} end`) response.write(character);
      response.addTrailers({ 'x-last': visa });
      response.end();
    });
    const chunked = await send(program, { headers: json, body });
    assert.equal(chunked.text, `begin ${'*'.repeat(16)} end`);
    assert.ok(!JSON.stringify(chunked.trailers).includes(visa));
    const coders = {
      gzip: gzipSync,
      br: brotliCompressSync,
      deflate: deflateSync,
      zstd: zstdCompressSync,
    };
    for (const [coding, compress] of Object.entries(coders)) {
      echo(() => ({
        body: compress(Buffer.from(`begin ${visa} end`)),
        headers: { 'content-encoding': coding },
      }));
      const { text, headers } = await send(program, {
        headers: { ...json, 'accept-encoding': coding },
        body,
      });
      assert.equal(text, `begin ${'*'.repeat(16)} end`, coding);
      assert.equal(headers['content-encoding'], undefined);
    }
    echo(() => ({ body: 'x', headers: { 'content-encoding': 'unknown' } }));
    assert.equal((await send(program, { headers: json, body })).status, 502);
    for (const { headers } of received())
      assert.equal(headerOf(headers, 'accept-encoding'), 'identity');
  });

  test('says nothing of guesses: right and wrong ones come back as the program wrote them', async () => {
    const program = await newProgram();
    destination.behave(async ({ response, received: all }) => {
      const { body, headers } = await all;
      const { description } = JSON.parse(body.toString());
      const request = headerOf(headers, 'x-request-id') ?? '';
      response.writeHead(200, { 'x-request-id': request }).end(JSON.stringify({ description }));
    });
    const forms = (card: string) => [
      card,
      (card.match(/.{4}/g) ?? []).join('-'),
      Buffer.from(card).toString('base64'),
    ];
    const escaped = Array.from(visa, (digit) => `\\u003${digit}`).join('');
    const sent = `{"card":{"number":"${program.number}"},"description":"${escaped}"}`;
    const { text: decoded } = await send(program, { headers: json, body: sent });
    assert.equal(decoded, JSON.stringify({ description: visa }), 'what the destination decodes');
    for (const guesses of [forms(visa), forms('4000056655665556')]) {
      for (const description of guesses) {
        const sent = JSON.stringify({ card: { number: program.number }, description });
        const { text } = await send(program, { headers: json, body: sent });
        assert.equal(text, JSON.stringify({ description }));
        const headers = { ...json, 'x-request-id': description };
        const body = JSON.stringify({ card: { number: program.number } });
        const other = await send(program, { headers, body });
        assert.equal(other.headers['x-request-id'], description);
      }
    }
  });

  test('asks for no charset in which values are not found, and gives no response in one', async () => {
    const program = await newProgram();
    const body = JSON.stringify({ card: { number: program.number } });
    const accept = 'text/html;charset=utf-16;q=0.5, application/json; Charset="utf-16"';
    received();
    for (const charset of ['utf-16', '"UTF-16LE"', 'utf-32', 'utf-7', 'cp037']) {
      const headers = { 'content-type': `application/json; charset=${charset}` };
      echo((got) => ({ body: Buffer.from(String(got), 'utf16le'), headers }));
      const { status, text } = await send(program, {
        headers: { ...json, accept, 'accept-charset': 'utf-16' },
        body,
      });
      assert.equal(status, 502, charset);
      assert.match(text, /a charset in which the vault cannot look/);
    }
    const [first] = received();
    assert.equal(headerOf(first?.headers ?? [], 'accept-charset'), undefined);
    const accepted = headerOf(first?.headers ?? [], 'accept');
    assert.equal(accepted, 'text/html;q=0.5, application/json');
    const foreign = { 'content-type': 'application/json; charset=utf-7' };
    assert.equal((await send(program, { headers: foreign, body })).status, 400);
    assert.deepEqual(received(), []);
  });

  test('passes events on as they come', async () => {
    const program = await newProgram();
    const next = Promise.withResolvers<void>();
    destination.behave(async ({ response, received: all }) => {
      await all;
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n');
      await next.promise;
      response.end('data: second\n\n');
    });
    const { socket } = await connectTo(authority, program.key);
    const secured = await secure(socket, program.ca);
    const request = http.request({
      method: 'POST',
      path: '/v1/x',
      headers: { host: authority, ...json },
      createConnection: () => secured,
    });
    request.end(JSON.stringify({ card: { number: program.number } }));
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const [first] = await once(response, 'data');
    assert.equal(String(first), 'data: first\n\n');
    next.resolve();
    const [second] = await once(response, 'data');
    assert.equal(String(second), 'data: second\n\n');
  });

  test('passes a tunnel on unopened, with the certificate of the host, until the policy is gone', async () => {
    const tunnel = { host: 'localhost', port: destination.port, tunnel: true };
    const program = await newProgram(tunnel);
    echo((body) => ({ body }));
    const { socket, status } = await connectTo(authority, program.key);
    assert.equal(status, 200);
    const secured = await secure(socket, destination.authority.cert);
    const { text } = await sendOn(secured, { body: program.number ?? 'x' });
    assert.ok(!text.includes(visa));
    const messages = (await program.tenant.rows('logs')).map(({ message }) => message);
    assert.ok(messages.some((one) => /CONNECT, tunnel to localhost/.test(one)));
    const again = await connectTo(authority, program.key);
    const { body } = await program.tenant.send('GET', '/applications/key', { key: program.key });
    const update = { name: 'x', permissions: ['proxy:invoke'], egress: null };
    await program.tenant.send('PUT', `/applications/${body.id}`, {
      key: program.tenant.managementKey,
      body: update,
    });
    vault.clock.advance(1_000);
    await once(again.socket.resume(), 'close');
  });

  test('what is passed on, in a tunnel and of a response, waits for its turns', async (t) => {
    const bytes = 2_097_152;
    destination.behave(async ({ response, received: all }) => {
      await all;
      response.writeHead(200, {}).end(Buffer.alloc(bytes));
    });
    const tunnel = { host: 'localhost', port: destination.port, tunnel: true };
    for (const [given, ca] of [
      [tunnel, destination.authority.cert],
      [policy, undefined],
    ] as const) {
      const program = await newProgram(given);
      const { socket } = await connectTo(authority, program.key);
      const secured = await secure(socket, ca ?? program.ca);
      const turns = t.mock.method(AdmittedEntrant.prototype, 'next').mock;
      const { text } = await sendOn(secured, { headers: json, body: '{}' });
      assert.equal(text.length, bytes);
      assert.ok(turns.callCount() >= 10, `${turns.callCount()} turns`);
      t.mock.restoreAll();
    }
  });

  test('a tunnel needs the permission to send requests, and ends with it', async () => {
    const tunnel = { host: 'localhost', port: destination.port, tunnel: true };
    const { tenant, key } = await newProgram(tunnel);
    const { socket, status } = await connectTo(authority, key);
    assert.equal(status, 200);
    const { body } = await tenant.send('GET', '/applications/key', { key });
    const update = { name: 'x', permissions: ['token:create'], egress: [tunnel] };
    const { status: updated } = await tenant.send('PUT', `/applications/${body.id}`, {
      key: tenant.managementKey,
      body: update,
    });
    assert.equal(updated, 200);
    vault.clock.advance(1_000);
    const refused = await connectTo(authority, key);
    assert.equal(refused.status, 403);
    assert.match(refused.body, /proxy:invoke or token:use/);
    await once(socket.resume(), 'close');
  });

  const url = `https://localhost:${destination.port}/v1/x`;
  const programs: Record<string, (body: string) => readonly [string, ...string[]]> = {
    'fetch of Node': (body) => [
      process.execPath,
      '-e',
      `fetch('${url}', {method: 'POST', headers: {'content-type': 'application/json'}, body: '${body}'})
        .then((response) => response.text()).then(console.log)`,
    ],
    'urllib of Python': (body) => [
      'python3',
      '-c',
      [
        'import urllib.request as r',
        `q = r.Request('${url}', b'${body}', {'content-type': 'application/json'})`,
        'print(r.urlopen(q).read().decode())',
      ].join('\n'),
    ],
  };

  for (const [name, commandOf] of Object.entries(programs)) {
    test(`a program keeps its code, and its settings alone lead it through the vault: ${name}`, async () => {
      const program = await newProgram();
      echo((body) => ({ body: `got ${body}` }));
      const file = join(temporaryDirectory(lender), 'authority.pem');
      writeFileSync(file, program.ca);
      const [command, ...words] = commandOf(JSON.stringify({ card: { number: program.number } }));
      const proxy = `http://agent:${program.key}@127.0.0.1:${proxyPort}`;
      received();
      const { promise, resolve } = Promise.withResolvers<string>();
      execFile(
        command,
        words,
        {
          env: {
            PATH: process.env['PATH'],
            HTTPS_PROXY: proxy,
            https_proxy: proxy,
            NODE_USE_ENV_PROXY: '1',
            NODE_EXTRA_CA_CERTS: file,
            SSL_CERT_FILE: file,
          },
        },
        (error, out, errors) => resolve(error ? `${error.message} ${errors}` : out),
      );
      const printed = await promise;
      assert.equal(printed.trim(), `got {"card":{"number":"${'*'.repeat(16)}"}}`);
      assert.match(received()[0]?.body.toString() ?? '', new RegExp(visa));
    });
  }

  test('429 beyond the budgets of a policy, and nothing is sent', async () => {
    const limited = await newProgram({ ...policy, calls: { per_hour: 3 }, values: { per_day: 1 } });
    echo(() => ({ body: 'ok' }));
    received();
    const body = JSON.stringify({ card: { number: limited.number } });
    assert.equal((await send(limited, { headers: json, body })).status, 200);
    const second = await send(limited, { headers: json, body });
    assert.equal(second.status, 429, second.text);
    assert.match(second.text, /1 values in a day/);
    assert.equal((await send(limited, { method: 'GET' })).status, 200);
    assert.equal((await send(limited, { method: 'GET' })).status, 429);
    assert.equal(received().length, 2);
  });
});
