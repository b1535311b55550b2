/** One import on several threads: as on one, and whatever ends in the middle of it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { cardNumber } from '../../bench/cards.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { linesOfAnswer, linesSent } from '../support/lines.ts';
import { beginRequest } from '../support/raw-request.ts';
import { storedRows, verifyLog } from '../support/rows.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { createStillClock, type request, startVault, type TestClock } from '../support/vault.ts';

const count = 3_000;

async function tenantOn(t: TestContext, engine: Engine, threads: number, clock?: TestClock) {
  const workers: Worker[] = [];
  const record = (worker: Worker) => {
    if (worker.threadName === 'request') workers.push(worker);
  };
  process.on('worker', record);
  t.after(() => void process.off('worker', record));
  const environment = { STRONGROOM_THREADS: String(threads) };
  const vault = await startVault(t, engine, { environment, ...(clock && { clock }) });
  return { tenant: await newTenant(vault), workers };
}

const intentOf = async (tenant: TestTenant, data: string): Promise<string> => {
  const body = { type: 'token', data };
  const permissions = ['token-intent:create'];
  const key = await tenant.application({ permissions });
  return (await tenant.send('POST', '/token-intents', { key, body })).body.id;
};

/** Of each kind of line some, among many that are plain. */
async function mixedLines(tenant: TestTenant): Promise<readonly unknown[]> {
  const lines: unknown[] = [];
  for (let at = 0; at < count; at += 1) {
    const card = { number: cardNumber(at), expiration_month: 12, expiration_year: 2030 };
    const plain = { id: `line-${at}`, type: 'card', data: card };
    const token = { id: `line-${at}`, type: 'token', data: `value ${at}` };
    const kinds: Readonly<Record<number, () => unknown>> = {
      3: () => ({ ...plain, id: undefined }),
      5: () => ({ ...plain, id: `line-${at - 5}` }),
      7: () => ({ ...token, id: `line-${Math.max(0, at - 1500)}` }),
      11: () => ({ ...token, data: `equal ${at % 13}`, deduplicate_token: true }),
      13: () => ({ ...plain, data: { ...card, number: '4242424242424241' } }),
      17: () => `{"data":"${at}`,
      19: () => '',
      23: () => ({ ...token, search_indexes: ['{{ data }}'], mask: '{{ data | reveal_last: 1 }}' }),
      29: () => ({ token_intent_id: '00000000-0000-4000-8000-000000000000' }),
      31: () => ({ ...token, data: 'x'.repeat(20_000) }),
    };
    const line = kinds[at % 37]?.();
    lines.push(line ?? plain);
  }
  for (const at of [700, 1_900]) {
    lines[at] = { id: `converted-${at}`, token_intent_id: await intentOf(tenant, `held ${at}`) };
  }
  return lines;
}

/** What a vault draws, each as the how manieth it is in the text: equal values stay equal. */
function named(text: string): string {
  const names = new Map<string, string>();
  const drawn = /"fingerprint":"[^"]+"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
  return text.replace(drawn, (value) => {
    const name = names.get(value) ?? `drawn-${names.size}`;
    names.set(value, name);
    return name;
  });
}

const tokensOf = async ({ rows }: TestTenant) => await rows('tokens');

const token = (id: string) => ({ id, type: 'token', data: id });

const idsOf = (prefix: string) => Array.from({ length: count }, (_, at) => `${prefix}-${at}`);

onBothEngines('an import on several threads', (engine) => {
  test('answers and stores what one thread does, byte for byte, with an entry for each line', async (t) => {
    const clock = createStillClock();
    const outcomes = [];
    for (const threads of [1, 3]) {
      const { tenant } = await tenantOn(t, engine, threads, clock);
      await tenant.token({ ...token('line-1'), data: 'another' });
      const sent = linesSent(await mixedLines(tenant));
      const { text } = await tenant.send('POST', '/tokens/bulk', sent);
      const answered = linesOfAnswer({ text });
      const created = answered.filter((line) => line.status === 201 && line.token.id);
      const ids = new Set(['line-1', ...created.map((line) => line.token.id)]);
      const stored = await tokensOf(tenant);
      assert.deepEqual(new Set(stored.map((row) => row.token_id)), ids);
      const logged = await tenant.logged();
      assert.equal(logged.filter((one) => one === 'create').length, ids.size);
      const shown = logged.filter((one) => one === 'create' || one === 'read').length;
      const succeeded = answered.filter(({ status }) => status < 300).length;
      assert.equal(shown, 1 + succeeded);
      const blocks = await storedRows(engine, tenant.vault.place, 'logs');
      const streams = new Set(blocks.map((row) => row.stream_id));
      // A part in which no line succeeds has an entry of its own, and the vault sizes parts by the time they take.
      const ofLines = logged.filter((one) => one !== 'import');
      outcomes.push({ text: named(text), logged: ofLines, streams: streams.size });
      await verifyLog(engine, tenant.vault.place);
    }
    const [one, several] = outcomes;
    assert.ok(one && several);
    for (const status of [201, 400, 409]) assert.ok(one.text.includes(`"status":${status}`));
    assert.equal(several.text, one.text);
    assert.deepEqual(several.logged, one.logged);
    // There each thread that commits has a log stream of its own.
    if (engine.name === 'postgres') assert.ok(several.streams > one.streams);
  });

  test('in which a thread is killed loses nothing acknowledged, and makes nothing twice', async (t) => {
    const { tenant, workers } = await tenantOn(t, engine, 2);
    for (const victim of workers.slice(0, 2)) {
      const ids = idsOf(randomUUID());
      const sent = linesSent(ids.map(token));
      const body = String(sent.body);
      // Whether it has the connection is for the system to say; the other one has some of the lines.
      const { socket, answer } = await beginRequest({
        url: tenant.vault.url,
        method: 'POST',
        path: '/tokens/bulk',
        headers: { ...sent.headers, 'svc-api-key': tenant.key, connection: 'close' },
        length: Buffer.byteLength(body),
      });
      socket.write(body);
      await once(socket, 'data');
      await Promise.all([once(victim, 'exit'), victim.terminate()]);
      const statuses = new Map<string, number>();
      for (const [, line, status] of (await answer).matchAll(/"line":(\d+),"status":(\d+)/g)) {
        assert.equal(statuses.has(String(line)), false, 'a line is answered once');
        statuses.set(String(line), Number(status));
      }
      assert.deepEqual(
        [...statuses.values()].filter((status) => status !== 201 && status !== 503),
        [],
      );
      const acknowledged = ids.filter((_, at) => statuses.get(String(at + 1)) === 201);
      const stored = (await tokensOf(tenant)).map((row) => `${row.token_id}`);
      const known = new Set(stored);
      assert.deepEqual(
        acknowledged.filter((id) => !known.has(id)),
        [],
      );
      const again = linesOfAnswer(await retried(() => tenant.send('POST', '/tokens/bulk', sent)));
      assert.deepEqual(
        again.map(({ status }) => status < 300),
        ids.map(() => true),
      );
    }
    const created = (await tenant.logged()).filter((one) => one === 'create');
    assert.equal(created.length, 2 * count);
    assert.equal((await tokensOf(tenant)).length, 2 * count);
    await verifyLog(engine, tenant.vault.place);
  });

  test('ends with its key: the last line says so, and what is not answered is not stored', async (t) => {
    const { tenant } = await tenantOn(t, engine, 2);
    const body = { name: 'brief', type: 'private', permissions: ['token:create'] };
    const manage = { key: tenant.managementKey };
    const { body: application } = await tenant.send('POST', '/applications', { ...manage, body });
    const path = `/applications/${application.id}/keys/${application.keys[0].id}`;
    const { socket, answer } = await beginRequest({
      url: tenant.vault.url,
      method: 'POST',
      path: '/tokens/bulk',
      headers: {
        'content-type': 'application/x-ndjson',
        'svc-api-key': application.key,
        connection: 'close',
      },
    });
    let over = false;
    socket.on('data', (chunk) => {
      over ||= String(chunk).includes('"problem"');
    });
    const sending = (async () => {
      for (let at = 0; !over; at += 1) {
        const lines = String(linesSent(idsOf(`lines-${at}`).map(token)).body);
        if (!socket.write(`${lines.length.toString(16)}\r\n${lines}\r\n`)) {
          await once(socket, 'drain');
        }
      }
      socket.write('0\r\n\r\n');
    })().catch(() => 'cut off while it sends');
    await once(socket, 'data');
    assert.equal((await tenant.send('DELETE', path, manage)).status, 204);
    const text = await answer;
    await sending;
    assert.match(text, /\{"problem":\{"type":"urn:strongroom:problem:unauthenticated"/);
    const answered = text.match(/"status":201/g)?.length;
    assert.equal((await tokensOf(tenant)).length, answered);
  });
});

async function retried(send: () => ReturnType<typeof request>): ReturnType<typeof request> {
  try {
    return await send();
  } catch {
    // The connection was one to the thread that has ended.
    return retried(send);
  }
}
