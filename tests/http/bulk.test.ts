/** `POST /tokens/bulk`: a line fails or succeeds alone, in order, and may be sent again. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { bodyBytesMax } from '../../src/http/protocol/body.ts';
import { linesAtOnceMax } from '../../src/http/protocol/lines.ts';
import { onBothEngines } from '../support/engines.ts';
import { bulk, type Lines, linesOfAnswer, linesSent } from '../support/lines.ts';
import { beginRequest, untilClosed } from '../support/raw-request.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { request, startVault } from '../support/vault.ts';

const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };

const laterYear = new Date().getUTCFullYear() + 2;
const token = (data: string, more: object = {}) => ({ type: 'token', data, ...more });

const statuses = (lines: Lines) => lines.map(({ line, status }) => [line, status]);

onBothEngines('POST /tokens/bulk 200', (engine) => {
  const tenants = tenantsOf(engine);

  test('a token is what POST /tokens would have made of its line, with the same entry in the log', async () => {
    const tenant = await tenants();
    const body = {
      type: 'card',
      data: { ...card, cvc: '123' },
      metadata: { owner: 'Ada' },
      search_indexes: ['{{ data.number | last4 }}'],
      expires_at: `${laterYear}-01-01T00:00:00Z`,
      containers: ['/pci/cards/'],
    };
    const { body: single } = await tenant.token(body);
    const [line] = await bulk(tenant, [body]);
    const { id: _1, created_at: _2, ...expected } = single;
    const { id, created_at, ...made } = line.token;
    assert.deepEqual([line.line, line.status, made], [1, 201, expected]);
    const read = await tenant.send('GET', `/tokens/${id}`);
    assert.deepEqual(read.body.data, { ...card, cvc: '123' });
    const found = await tenant.send('POST', '/tokens/search', { body: { query: 'data:4242' } });
    assert.equal(found.body.pagination.total_items, 2);
    assert.deepEqual(await tenant.logged(), ['create', 'create', 'read', 'read', 'read', 'search']);
  });

  test('every line is answered in its order, more lines than are worked on at once', async () => {
    const tenant = await tenants();
    const count = 2 * linesAtOnceMax + 1;
    const lines = Array.from({ length: count }, (_, at) =>
      at % 7 === 3 ? 'no JSON' : token(`value ${at}`, { id: `bulk-${at}` }),
    );
    const answered = await bulk(tenant, lines);
    assert.deepEqual(
      statuses(answered),
      lines.map((_, at) => [at + 1, at % 7 === 3 ? 400 : 201]),
    );
    const made = answered.filter(({ token }) => token);
    assert.ok(made.every((one) => one.token.id === `bulk-${one.line - 1}`));
    assert.equal((await tenant.counts())['tokens'], made.length);
  });

  test('blank lines are counted and not answered, and the last line needs no newline', async () => {
    const tenant = await tenants();
    const sent = linesSent(['', token('a'), ' \t\r', token('b')]);
    const body = String(sent.body).trimEnd();
    const answer = await tenant.send('POST', '/tokens/bulk', { ...sent, body });
    assert.deepEqual(statuses(linesOfAnswer(answer)), [
      [2, 201],
      [4, 201],
    ]);
  });

  test('no lines are no tokens', async () => {
    const tenant = await tenants();
    const before = await tenant.counts();
    assert.deepEqual(await bulk(tenant, []), []);
    assert.deepEqual(await tenant.counts(), before);
  });

  test('equal values are deduplicated, within the body and to what is stored, as by POST /tokens', async () => {
    const tenant = await tenants();
    const { body: stored } = await tenant.token(token('stored', { deduplicate_token: true }));
    const twin = (data: string) => token(data, { deduplicate_token: true });
    const [first, again, old] = await bulk(tenant, [twin('new'), twin('new'), twin('stored')]);
    assert.deepEqual(
      [first, again, old].map(({ status }) => status),
      [201, 201, 201],
    );
    assert.equal(again.token.id, first.token.id);
    assert.equal(old.token.id, stored.id);
    const repeat = await tenant.token(twin('stored'));
    assert.deepEqual(old.token, repeat.body);
  });

  test('a value is found in the lines before it, also while those are still being made durable', async () => {
    const tenant = await tenants();
    const between = Array.from({ length: linesAtOnceMax }, (_, at) => token(`between ${at}`));
    const lines = [token('same'), ...between, token('same', { deduplicate_token: true })];
    const answered = await bulk(tenant, lines);
    assert.equal(answered.at(-1).token.id, answered[0].token.id);
    assert.equal(answered.at(-1).token._extras.deduplicated, true);
  });

  test('an update of an existing token sees the lines before it', async () => {
    const tenant = await tenants();
    await tenant.set({ token_deduplication_behavior: 'update_existing' });
    const line = (key: string) =>
      token('same', { deduplicate_token: true, metadata: { [key]: 'set' } });
    const lines = await bulk(tenant, ['a', 'b', 'c'].map(line));
    const read = await tenant.send('GET', `/tokens/${lines[0].token.id}`);
    assert.deepEqual(read.body.metadata, { a: 'set', b: 'set', c: 'set' });
  });

  test('a token intent is converted once', async () => {
    const tenant = await tenants();
    const key = await tenant.application({ permissions: ['token-intent:create', 'token:create'] });
    const sent = { key, body: { type: 'token', data: 'intended' } };
    const intent = await tenant.send('POST', '/token-intents', sent);
    const line = { token_intent_id: intent.body.id };
    const [made, gone] = await bulk(tenant, [line, line]);
    assert.deepEqual([made.status, gone.status], [201, 400]);
    assert.ok(gone.problem.errors.token_intent_id);
    assert.equal((await bulk(tenant, [line]))[0].status, 400);
    const read = await tenant.send('GET', `/tokens/${made.token.id}`);
    assert.equal(read.body.data, 'intended');
  });

  test('a key without token:read sees what POST /tokens shows it', async () => {
    const tenant = await tenants();
    const holder = await tenant.holder({ permissions: ['token:create'], transform: 'mask' });
    const [line] = await bulk(tenant, [{ type: 'card', data: card }], holder);
    assert.deepEqual(line.token.data, { ...card, number: 'XXXXXXXXXXXX4242' });
  });
});

onBothEngines('POST /tokens/bulk, a line that was done before,', (engine) => {
  const tenants = tenantsOf(engine);

  test('is answered 200 with its token, and makes nothing', async () => {
    const tenant = await tenants();
    const line = token('once', { id: 'line-1', metadata: { a: 'b' } });
    const [made] = await bulk(tenant, [line]);
    const [repeated] = await bulk(tenant, [line]);
    assert.deepEqual([made.status, repeated.status], [201, 200]);
    assert.deepEqual(repeated.token, { ...made.token, _extras: { deduplicated: true } });
    assert.deepEqual(await bulk(tenant, [line]), [repeated]);
    assert.equal((await tenant.counts())['tokens'], 1);
    assert.deepEqual(await tenant.logged(), ['create', 'read', 'read']);
  });

  test('is so also where both requests came under one trace id', async () => {
    const tenant = await tenants();
    const { body, headers } = linesSent([token('once', { id: 'line-1' })]);
    const sent = { body, headers: { ...headers, 'SVC-TRACE-ID': 'the-same' } };
    await tenant.send('POST', '/tokens/bulk', sent);
    tenant.vault.clock.advance(1);
    const [repeated] = linesOfAnswer(await tenant.send('POST', '/tokens/bulk', sent));
    assert.equal(repeated.status, 200);
  });

  test('is so also once the card code it brings is gone', async () => {
    const tenant = await tenants();
    const line = { id: 'coded', type: 'card', data: { ...card, cvc: '123' } };
    await bulk(tenant, [line]);
    tenant.vault.clock.advance(2 * 3_600_000);
    const [repeated] = await bulk(tenant, [line]);
    assert.equal(repeated.status, 200);
    assert.deepEqual(repeated.token.data, card);
  });

  test('is 409 where anything differs, on its line alone', async () => {
    const tenant = await tenants();
    const line = token('once', { id: 'line-1', metadata: { a: 'b' } });
    const others = [
      { ...line, data: 'twice' },
      { ...line, metadata: { a: 'c' } },
      { ...line, metadata: null },
      { ...line, mask: '{{ data | reveal_last: 1 }}' },
      { ...line, containers: ['/other/'] },
      { ...line, search_indexes: ['{{ data }}'] },
      { ...line, fingerprint_expression: '{{ data }}' },
      { ...line, expires_at: `${laterYear}-01-01T00:00:00Z` },
      { ...line, type: 'card', data: card },
    ];
    await bulk(tenant, [line]);
    const answered = await bulk(tenant, [...others, token('last')]);
    assert.deepEqual(
      answered.map(({ status }) => status),
      [...others.map(() => 409), 201],
    );
    assert.deepEqual(
      (await bulk(tenant, others)).map(({ problem }) => problem.type),
      others.map(() => 'urn:strongroom:problem:conflict'),
    );
    assert.equal((await tenant.counts())['tokens'], 2);
  });

  test('is 409 to another application, which could otherwise guess what a token holds', async () => {
    const tenant = await tenants();
    const line = token('guessed', { id: 'line-1' });
    await bulk(tenant, [line]);
    const other = await tenant.holder({});
    assert.equal((await bulk(tenant, [line], other))[0].status, 409);
  });

  test('is 409 once the token was changed', async () => {
    const tenant = await tenants();
    const line = token('once', { id: 'line-1' });
    await bulk(tenant, [line]);
    await tenant.send('PATCH', '/tokens/line-1', { body: { data: 'changed' } });
    assert.equal((await bulk(tenant, [line]))[0].status, 409);
  });

  test('is created again once the token has expired', async () => {
    const tenant = await tenants();
    const soon = new Date(tenant.vault.clock.now() + 60_000).toISOString();
    await bulk(tenant, [token('mortal', { id: 'line-1', expires_at: soon })]);
    tenant.vault.clock.advance(61_000);
    assert.equal((await bulk(tenant, [token('mortal', { id: 'line-1' })]))[0].status, 201);
  });

  test('racing bodies of the same lines make each token once', async () => {
    const tenant = await tenants();
    const lines = Array.from({ length: 50 }, (_, at) => token(`race ${at}`, { id: `race-${at}` }));
    const answers = await Promise.all([lines, lines, lines].map((one) => bulk(tenant, one)));
    for (const [at] of lines.entries()) {
      const outcome = answers.map((one) => one[at].status).sort();
      assert.deepEqual(outcome, [200, 200, 201]);
    }
    assert.equal((await tenant.counts())['tokens'], lines.length);
  });
});

onBothEngines('POST /tokens/bulk, a line that is refused', (engine) => {
  const tenants = tenantsOf(engine);

  test('400 names what is wrong with it, and its value appears nowhere', async () => {
    const tenant = await tenants();
    const secret = '4242424242424241';
    const wrong: readonly (readonly [unknown, string, string?])[] = [
      [`{"data":"${secret}`, 'malformed_request'],
      [`[${secret}]`, 'validation_failed', 'body'],
      ['null', 'validation_failed', 'body'],
      [{ type: 'card', data: { number: secret } }, 'validation_failed', 'data.number'],
      [token(secret, { colour: 'red' }), 'validation_failed', 'colour'],
      [token(secret, { id: 'a/b' }), 'validation_failed', 'id'],
      [{ data: secret }, 'validation_failed', 'type'],
      [{ token_intent_id: randomUUID() }, 'validation_failed', 'token_intent_id'],
      [token(secret, { search_indexes: ['{{ data.none }}'] }), 'validation_failed'],
    ];
    const lines = await bulk(
      tenant,
      wrong.map(([line]) => line),
    );
    assert.deepEqual(
      lines.map(({ status }) => status),
      wrong.map(() => 400),
    );
    for (const [at, [, code, attribute]] of wrong.entries()) {
      const { problem } = lines[at];
      assert.equal(problem.type, `urn:strongroom:problem:${code}`);
      if (attribute !== undefined) assert.ok(problem.errors[attribute], JSON.stringify(problem));
    }
    assert.ok(!JSON.stringify(lines).includes(secret));
    assert.ok(!JSON.stringify(tenant.vault.logged).includes(secret));
    assert.equal((await tenant.counts())['tokens'], 0);
    assert.deepEqual(await tenant.logged(), []);
    assert.deepEqual(await tenant.logged('token_intent'), ['convert failed']);
  });

  test('400 for a line that is not UTF-8, without effect on other lines', async () => {
    const tenant = await tenants();
    const bytes = Buffer.from(linesSent([token('é'), token('X'), token('ü')]).body as string);
    bytes[bytes.indexOf('X')] = 0xff;
    const sent = { body: bytes, headers: { 'content-type': 'application/x-ndjson' } };
    const lines = linesOfAnswer(await tenant.send('POST', '/tokens/bulk', sent));
    assert.deepEqual(
      lines.map(({ status, token }) => [status, token?.data]),
      [
        [201, 'é'],
        [400, undefined],
        [201, 'ü'],
      ],
    );
  });

  test('413 for a line that is longer than a body may be; one that is as long is taken', async () => {
    const tenant = await tenants();
    const empty = JSON.stringify(token('')).length;
    const longest = JSON.stringify(token('x'.repeat(bodyBytesMax - empty)));
    assert.equal(longest.length, bodyBytesMax);
    const lines = await bulk(tenant, [longest, ` ${longest}`, token('after')]);
    assert.deepEqual(
      lines.map(({ status }) => status),
      [201, 413, 201],
    );
  });

  test('403 where the key lacks token:create there, with its entry; its neighbours succeed', async () => {
    const tenant = await tenants();
    const key = await tenant.holder({ container: '/mine/' });
    const lines = [{ containers: ['/mine/'] }, {}, { containers: ['/mine/'] }];
    const answered = await bulk(
      tenant,
      lines.map((more) => token('x', more)),
      key,
    );
    assert.deepEqual(
      answered.map(({ status }) => status),
      [201, 403, 201],
    );
    assert.deepEqual(await tenant.logged(), ['create', 'create', 'create denied']);
  });
});

onBothEngines('POST /tokens/bulk as a whole', (engine) => {
  const tenants = tenantsOf(engine);

  test('401, 403, 405, 415: what is refused before the body is read', async () => {
    const tenant = await tenants();
    const reader = await tenant.holder({ permissions: ['token:read'] });
    const send = (more: object, path = '/tokens/bulk', method = 'POST') =>
      tenant.send(method, path, { ...linesSent([token('x')]), ...more });
    assert.equal((await send({ key: 'none' })).status, 401);
    assert.equal((await send({ key: reader })).status, 403);
    assert.equal((await send({}, '/tokens/bulk', 'PUT')).status, 405);
    const headers = { 'content-type': 'application/json' };
    assert.equal((await send({ headers })).status, 415);
    assert.equal((await send({}, '/tokens')).status, 415);
    assert.equal((await tenant.counts())['tokens'], 0);
  });

  test('400 with an idempotency key, which promises what a stream cannot keep', async () => {
    const tenant = await tenants();
    const { body, headers } = linesSent([token('x')]);
    const keyed = { ...headers, 'SVC-IDEMPOTENCY-KEY': 'once' };
    const answer = await tenant.send('POST', '/tokens/bulk', { body, headers: keyed });
    assert.equal(answer.status, 400);
    assert.ok(
      answer.body.errors['SVC-IDEMPOTENCY-KEY'] ?? answer.body.errors['svc-idempotency-key'],
    );
    assert.equal((await tenant.counts())['tokens'], 0);
  });

  test('a line is answered when it has arrived, not when the body has ended', async () => {
    const tenant = await tenants();
    const { socket } = await openBulk(tenant);
    const line = `${JSON.stringify(token('now', { id: 'now' }))}\n`;
    sendChunk(socket, line);
    const answer = await untilReceived(socket, /"id":"now"/);
    assert.match(answer, /^HTTP\/1\.1 200 OK/);
    sendChunk(socket, line.replaceAll('now', 'later'));
    await untilReceived(socket, /"id":"later"/);
    socket.destroy();
  });

  test('a client that goes away stops the work; what was answered stays, and nobody is alarmed', async () => {
    const tenant = await tenants();
    const { socket } = await openBulk(tenant);
    sendChunk(socket, `${JSON.stringify(token('kept', { id: 'kept' }))}\n{"type":"to`);
    await untilReceived(socket, /"id":"kept"/);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.destroy();
    await closed;
    assert.equal((await tenant.send('GET', '/tokens/kept')).status, 200);
    assert.equal((await tenant.counts())['tokens'], 1);
    const alarms = tenant.vault.logged.filter(({ fields }) => (fields?.status ?? 0) >= 500);
    assert.deepEqual(alarms, []);
  });

  test('a key that is revoked midway creates nothing more, and the last line says so', async () => {
    const tenant = await tenants();
    const body = { name: 'brief', type: 'private', permissions: ['token:create'] };
    const manage = { key: tenant.managementKey };
    const { body: application } = await tenant.send('POST', '/applications', { ...manage, body });
    const { socket } = await openBulk(tenant, application.key);
    sendChunk(socket, `${JSON.stringify(token('before', { id: 'before' }))}\n`);
    await untilReceived(socket, /"id":"before"/);
    const path = `/applications/${application.id}/keys/${application.keys[0].id}`;
    assert.equal((await tenant.send('DELETE', path, manage)).status, 204);
    sendChunk(socket, `${JSON.stringify(token('after', { id: 'after' }))}\n`);
    await untilReceived(socket, /\{"problem":\{"type":"urn:strongroom:problem:unauthenticated"/);
    socket.destroy();
    assert.equal((await tenant.send('GET', '/tokens/after')).status, 404);
  });
});

/** Short, and longer than a busy machine takes to make one line durable. */
const patienceMs = 1000;

onBothEngines('POST /tokens/bulk while the server', (engine) => {
  test('stops: what was sent is answered or not done, and the last line says so', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const { socket } = await open(vault.url, key);
    sendChunk(socket, `${JSON.stringify(token('before', { id: 'before' }))}\n`);
    await untilReceived(socket, /"id":"before"/);
    const stopped = vault.stop();
    await untilClosed(vault.url);
    sendChunk(socket, `${JSON.stringify(token('after'))}\n`);
    await untilReceived(socket, /\{"problem":\{"type":"urn:strongroom:problem:unavailable"/);
    socket.end('0\r\n\r\n');
    await stopped;
  });

  test('is asked slowly: it may take longer than a request, as long as bytes come', async (t) => {
    const vault = await startVault(t, engine, { requestTimeoutMs: patienceMs });
    const key = await vault.application();
    const { socket } = await open(vault.url, key);
    const started = performance.now();
    let sent = 0;
    // Each line goes out when the one before was answered; Node looks for late requests all the while.
    while (performance.now() - started < 2.5 * patienceMs) {
      sendChunk(socket, `${JSON.stringify(token('slow', { id: `slow-${sent}` }))}\n`);
      await untilReceived(socket, new RegExp(`"id":"slow-${sent}"`));
      sent += 1;
    }
    socket.write('0\r\n\r\n');
    await untilReceived(socket, /(?:^|\n)0\r\n\r\n$/);
    socket.destroy();
    const list = await request(`${vault.url}/tokens?size=0`, 'GET', { key });
    assert.equal(list.body.pagination.total_items, sent);
  });

  test('hears nothing more: the connection is cut', async (t) => {
    const vault = await startVault(t, engine, { requestTimeoutMs: patienceMs });
    const { socket, answer } = await open(vault.url, await vault.application());
    sendChunk(socket, `${JSON.stringify(token('before', { id: 'before' }))}\n`);
    assert.match(await answer, /"id":"before"/);
  });
});

function openBulk(tenant: TestTenant, key = tenant.key) {
  return open(tenant.vault.url, key);
}

/** A bulk request of unknown length, of which only the headers have left. */
function open(url: string, key: string) {
  const headers = {
    'content-type': 'application/x-ndjson',
    'svc-api-key': key,
  };
  return beginRequest({ url, method: 'POST', path: '/tokens/bulk', headers });
}

interface Writing {
  write(text: string): unknown;
}

function sendChunk(socket: Writing, text: string): void {
  socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
}

/** What has arrived since the call, once it matches. */
async function untilReceived(
  socket: AsyncIterable<unknown> & NodeJS.ReadableStream,
  pattern: RegExp,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const onData = (chunk: Buffer | string) => {
      text += String(chunk);
      if (!pattern.test(text)) return;
      socket.off('data', onData);
      socket.off('close', onClose);
      resolve(text);
    };
    const onClose = () => reject(new Error(`closed before ${pattern} came: ${text}`));
    socket.on('data', onData);
    socket.on('close', onClose);
  });
}
