/** A card is charged with its number in the request, and nobody but the destination ever has it. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { answer, hang } from '../support/destination.ts';
import { engineOf, type Place } from '../support/engines.ts';
import { startPostgres } from '../support/postgres.ts';
import { environmentOf, spawnVault, untilOutput } from '../support/process.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { createScanner, filesBelow } from '../support/scan.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { visa } from '../support/values.ts';
import { createApplication, managementKey, type Received, request } from '../support/vault.ts';

const { destination, url, environment } = await startCalled({ after });

const form = 'application/x-www-form-urlencoded';

/** Charges a card in every place that a request has, well and badly, and gives what came back. */
async function charge(vault: string): Promise<Received[]> {
  const key = await createApplication(vault);
  const body = { type: 'card', data: visa };
  const { id } = (await request(`${vault}/tokens`, 'POST', { key, body })).body;
  const proxy = { name: 'Charge', destination_url: `${url}/v1` };
  const made = await request(`${vault}/proxies`, 'POST', { key: managementKey, body: proxy });
  const using = await createApplication(vault, { permissions: ['proxy:invoke'] });
  const limit = async (timeout: number) => {
    const path = `${vault}/proxies/${made.body.id}`;
    const changed = await request(path, 'PATCH', { key: managementKey, body: { timeout } });
    assert.equal(changed.status, 204, changed.text);
  };
  const received: Received[] = [];
  const send = async (path: string, type: string, content: string, more: object = {}) => {
    const headers = { 'content-type': type, 'svc-proxy-key': made.body.key, ...more };
    const sent = { key: using, body: content, headers };
    received.push(await request(`${vault}/proxy${path}`, 'POST', sent));
    return destination.requests.at(-1);
  };
  const number = `{{ ${id} | json: '$.number' }}`;
  const encoded = encodeURIComponent(number);
  destination.behave(answer(200, ['Content-Type', 'application/json'], '{"approved":true}'));
  for (const [path, type, content, more] of [
    ['/json', 'application/json', JSON.stringify({ card: { number } })],
    ['/form', form, `number=${encoded}&amount=1`],
    ['/xml', 'application/xml', `<card number="x">${number}</card>`],
    ['/text', 'text/plain', `PAN ${number}`],
    [`/path/${encoded}`, 'text/plain', 'x'],
    [`/query?number=${encoded}`, 'text/plain', 'x'],
    ['/header', 'text/plain', 'x', { 'x-pan': number }],
  ] as [string, string, string, object?][]) {
    const sent = await send(path, type, content, more);
    assert.equal(received.at(-1)?.text, '{"approved":true}');
    const whole = `${sent?.url} ${sent?.headers.join(' ')} ${sent?.body}`;
    assert.ok(whole.includes(visa.number), `${path}: ${whole}`);
  }
  // What goes wrong does not say more. An expression that fails gives null, because the key may not read the token.
  const failing = `{{ ${id} | json: '$.number' | to_boolean }}`;
  await send('', 'application/json', JSON.stringify({ failing }));
  await send('', 'application/json', JSON.stringify({ number, unknown: '{{ no-such-token }}' }));
  await send('', 'text/plain', number, { 'x-a': `{{ ${id} | json: '$.number' | append: "\\n" }}` });
  await limit(1);
  destination.behave(hang);
  await send('', 'application/json', JSON.stringify({ number }));
  await limit(20);
  destination.behave(({ reset }) => reset());
  await send('', 'application/json', JSON.stringify({ number }));
  const statuses = received.slice(7).map(({ status }) => status);
  assert.deepEqual(statuses, [200, 400, 200, 408, 502]);
  received.push(await request(`${vault}/metrics`, 'GET'));
  received.push(await request(`${vault}/logs?size=100`, 'GET', { key: managementKey }));
  return received;
}

async function findNumber(
  t: TestContext,
  place: Place,
  directories: readonly string[],
): Promise<void> {
  const temporary = join(temporaryDirectory(t), 'tmp');
  mkdirSync(temporary);
  const logging = { STRONGROOM_LOG_LEVEL: 'debug', TMPDIR: temporary, SQLITE_TMPDIR: temporary };
  const vault = await spawnVault(t, environmentOf(place, environment, logging));
  const received = await charge(vault.url);
  await untilOutput(vault, /"msg":"request refused"/);
  await vault.kill();
  const find = createScanner([visa.number]);
  const traffic = received.map(({ text, headers }) => text + JSON.stringify([...headers]));
  assert.deepEqual(find('traffic', Buffer.from(traffic.join('\n'))), []);
  assert.deepEqual(find('output', Buffer.from(vault.output())), []);
  for (const { path, bytes } of [...directories, temporary].flatMap(filesBelow)) {
    assert.deepEqual(find(path, bytes), []);
  }
}

test('on the embedded engine the number is only in what the destination received', async (t) => {
  const place = await engineOf('sqlite').place(t);
  await findNumber(t, place, [place.dataDir]);
});

test('on PostgreSQL, which logs every statement, it is only there as well', async (t) => {
  const settings = { log_statement: 'all', log_parameter_max_length: '-1', autovacuum: 'off' };
  const cluster = await startPostgres({ settings });
  t.after(() => cluster.stop());
  const place = { databaseUrl: await cluster.createDatabase(), dataDir: temporaryDirectory(t) };
  await findNumber(t, place, [cluster.directory, place.dataDir]);
});
