/** The day of a leak: a key is found, its use is reported exactly, and it ends, from the command line alone. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Instant, instantAfter } from '../../src/base/clock.ts';
import { formatTimestamp } from '../../src/base/dates.ts';
import type { Change } from '../../src/store/change.ts';
import { codeOf } from '../../src/store/log-chain/disclosure.ts';
import { type LogEntry, noSource } from '../../src/store/log-chain/entries.ts';
import { onBothEngines } from '../support/engines.ts';
import { environmentOf, type Finished, runWithInput } from '../support/process.ts';
import { type Below, seeded } from '../support/random.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

interface IssuedKey {
  readonly application: string;
  readonly id: string;
  readonly text: string;
}

/** Three applications with two keys each. */
async function issuedKeys(tenant: TestTenant): Promise<IssuedKey[]> {
  const keys: IssuedKey[] = [];
  const admin = { key: tenant.managementKey };
  for (const name of ['web', 'billing', 'support']) {
    const body = { name, type: 'private', permissions: ['token:read'] };
    const made = await tenant.send('POST', '/applications', { ...admin, body });
    const { id: application } = made.body;
    const second = await tenant.send('POST', `/applications/${application}/keys`, admin);
    for (const { id, key: text } of [made.body.keys[0], second.body]) {
      keys.push({ application, id, text });
    }
  }
  return keys;
}

const addresses = ['198.51.100.1', '198.51.100.2', '203.0.113.7', '2001:db8::7'];
const operations = ['read', 'read', 'read', 'read', 'create', 'update', 'delete', 'refused'];

interface Deed {
  readonly key: IssuedKey;
  readonly address: string;
  readonly token: string;
  readonly operation: string;
  readonly shown: 'revealed' | 'masked' | undefined;
  readonly at: Instant;
  readonly times: number;
}

function anyDeed(below: Below, keys: readonly IssuedKey[], at: Instant): Deed {
  const from = <T>(list: readonly T[]) => list[below(list.length)] as T;
  const operation = from(operations);
  return {
    key: from(keys),
    address: from(addresses),
    token: `token ${below(2_000)}`,
    operation,
    shown: operation === 'read' ? from(['revealed', 'masked'] as const) : undefined,
    at,
    times: operation === 'refused' ? 1 + below(3) : 1,
  };
}

function entryOf(tenant: TestTenant, deed: Deed): LogEntry {
  const { key, operation, shown, times } = deed;
  const isRefused = operation === 'refused';
  return {
    tenant_id: tenant.id,
    created_at: deed.at,
    actor_id: key.application,
    actor_type: 'application',
    entity_type: 'token',
    entity_id: deed.token,
    operation: isRefused ? 'read' : operation,
    message: times === 1 ? 'Token' : `Token read denied (${times} times)`,
    result: isRefused ? 'denied' : 'success',
    disclosure: shown ? codeOf({ shown, through: 'get' }) : null,
    origin: deed.address,
    trace_id: null,
    source: { ...noSource, key_id: key.id },
    container: '/pci/high/',
  };
}

/** Added up without any of the product's code. */
function expectedFigures(deeds: readonly Deed[]) {
  const figure = (is: (deed: Deed) => boolean) => {
    const found = deeds.filter(is);
    const events = found.reduce((sum, { times }) => sum + times, 0);
    return { events, tokens: new Set(found.map(({ token }) => token)).size };
  };
  const did = (operation: string) => figure((deed) => deed.operation === operation);
  return {
    revealed: figure(({ shown }) => shown === 'revealed'),
    masked: figure(({ shown }) => shown === 'masked'),
    created: did('create'),
    updated: did('update'),
    deleted: did('delete'),
    refused: did('refused'),
  };
}

const commits = 100;
const entriesPerCommit = 500;

onBothEngines('The day of the leak', (engine) => {
  test('a history of 50,000 entries is investigated in seven commands, and the report is exact', async (t) => {
    const below = seeded(t);
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const keys = await issuedKeys(tenant);
    const now = vault.clock.now();
    const deeds: Deed[] = [];
    for (let index = 0; index < commits; index++) {
      const at = instantAfter(now, (index - commits) * 60_000);
      const some = Array.from({ length: entriesPerCommit }, () => anyDeed(below, keys, at));
      const entries = some.map((deed) => entryOf(tenant, deed));
      await vault.running.vault.store.commit({ entries } as unknown as Change);
      deeds.push(...some);
    }
    const leaked = keys[3] as IssuedKey;
    const environment = environmentOf(vault.place);
    let count = 0;
    const run = async (words: readonly string[], input = ''): Promise<Finished> => {
      count += 1;
      const finished = await runWithInput(words, environment, input);
      assert.equal(finished.code, 0, finished.stderr);
      assert.ok(!`${finished.stdout}${finished.stderr}`.includes(leaked.text), 'no key is printed');
      return finished;
    };

    const found = JSON.parse((await run(['key', 'find', '--json'], `${leaked.text}\n`)).stdout);
    assert.equal(found.key_id, leaked.id);
    assert.equal(found.application_id, leaked.application);
    assert.equal(found.application, 'billing');
    const ofTenant = ['--tenant', found.tenant_id];

    const since = instantAfter(now, -60 * 60_000);
    const span = ['--since', formatTimestamp(since)];
    const incident = ['incident', found.key_id, ...ofTenant, ...span];
    const report = JSON.parse((await run([...incident, '--json'])).stdout);
    const own = deeds.filter(({ key, at }) => key.id === leaked.id && at >= since);
    const expected = expectedFigures(own);
    for (const [name, figure] of Object.entries(expected)) {
      assert.deepEqual(report[name], figure, name);
    }
    assert.deepEqual(report.addresses.toSorted(), addresses.toSorted());
    assert.deepEqual(report.application_ids, [leaked.application]);
    const markdown = (await run(incident)).stdout;
    const { events, tokens } = expected.revealed;
    assert.ok(markdown.includes(`| Values shown in plaintext | ${events} | ${tokens} |`), markdown);

    const lines = ({ stdout }: Finished) =>
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
    const what = lines(await run(['logs', 'what', found.key_id, ...ofTenant, ...span, '--json']));
    const groups = Map.groupBy(own, ({ address, token }) => `${address} ${token}`);
    assert.equal(what.length, groups.size);
    for (const use of what) {
      const group = groups.get(`${use.address} ${use.token_id}`) ?? [];
      assert.equal(
        use.count,
        group.reduce((sum, { times }) => sum + times, 0),
      );
      const times = group.map(({ at }) => at).sort();
      assert.equal(use.first, formatTimestamp(times[0] as Instant));
      assert.equal(use.last, formatTimestamp(times.at(-1) as Instant));
    }

    const token = String(what[0].token_id);
    const who = lines(await run(['logs', 'who', token, ...ofTenant, '--json']));
    const about = deeds.filter((deed) => deed.token === token);
    assert.equal(who.length, new Set(about.map(({ key, address }) => `${key.id} ${address}`)).size);
    assert.equal(
      who.reduce((sum, { count: times }) => sum + times, 0),
      about.reduce((sum, { times }) => sum + times, 0),
    );

    const address = String(addresses[2]);
    const filter = ['--key_id', leaked.id, '--address', address, '--operation', 'delete'];
    const listed = lines(
      await run(['logs', 'list', ...filter, ...ofTenant, ...span, '--limit', 'all', '--json']),
    );
    const deletions = own.filter((deed) => deed.address === address && deed.operation === 'delete');
    assert.deepEqual(
      listed.map((entry) => entry.entity_id).sort(),
      deletions.map((deed) => deed.token).sort(),
    );

    const revoked = JSON.parse(
      (await run(['key', 'revoke', leaked.id, ...ofTenant, '--json'])).stdout,
    );
    assert.equal(revoked.key_id, leaked.id);
    vault.clock.advance(1_000);
    assert.equal((await vault.send('GET', '/tokens/x', { key: leaked.text })).status, 401);
    assert.ok(count < 10);
  });

  test('a revoked key ends with the sessions that it opened and authorized, which the report has', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const [server] = await issuedKeys(tenant);
    const publicKey = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const environment = environmentOf(vault.place);
    const ofTenant = ['--tenant', tenant.id];
    await tenant.token({ id: 'card', type: 'token', data: 'x', containers: ['/general/high/'] });
    const opened = await tenant.send('POST', '/sessions', { key: publicKey });
    const grant = { nonce: opened.body.nonce, permissions: ['token:read'] };
    const key = (server as IssuedKey).text;
    const granted = await tenant.send('POST', '/sessions/authorize', { key, body: grant });
    assert.equal(granted.status, 200, granted.text);
    const read = () => tenant.send('GET', '/tokens/card', { key: opened.body.session_key });
    assert.equal((await read()).status, 200);
    const id = (server as IssuedKey).id;
    const reported = await runWithInput(['incident', id, ...ofTenant, '--json'], environment, '');
    const { sessions, masked, others } = JSON.parse(reported.stdout);
    assert.equal(sessions.length, 1);
    assert.deepEqual(masked, { events: 0, tokens: 0 });
    assert.equal(typeof sessions[0].first, 'string');
    assert.deepEqual(sessions[0].addresses, ['127.0.0.1']);
    assert.ok(others.some((one: { entity_type: string }) => one.entity_type === 'session'));
    const words = ['key', 'revoke', id, ...ofTenant, '--json'];
    const revoked = JSON.parse((await runWithInput(words, environment, '')).stdout);
    assert.deepEqual(revoked.sessions, [sessions[0].session_id]);
    vault.clock.advance(1_000);
    // The session is left without any right.
    assert.equal((await read()).status, 403);
  });

  test('the commands of docs/incidents.md do what it says, in its order', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const [leaked] = await issuedKeys(tenant);
    await tenant.token({ id: 'card', type: 'token', data: 'x', containers: ['/general/high/'] });
    const key = (leaked as IssuedKey).text;
    assert.equal((await tenant.send('GET', '/tokens/card', { key })).status, 200);
    const directory = temporaryDirectory(t);
    const variables: Readonly<Record<string, string>> = {
      KEY_ID: (leaked as IssuedKey).id,
      APPLICATION: (leaked as IssuedKey).application,
      TENANT: tenant.id,
      TOKEN: 'card',
      ADDRESS: '127.0.0.1',
    };
    const environment = environmentOf(vault.place);
    const page = readFileSync(join(import.meta.dirname, '../../docs/incidents.md'), 'utf8');
    const commands = page.match(/^npx strongroom .*$/gm) ?? [];
    assert.ok(commands.length >= 10);
    for (const command of commands) {
      const [line = ''] = command.split(/ [<>] /);
      const words = line
        .split(' ')
        .slice(2)
        .map((word) => word.replace(/^"\$([A-Z_]+)"$/, (_, name) => variables[name] ?? word))
        .map((word) => (word === 'audit.ndjson' ? join(directory, word) : word));
      const { code, stderr } = await runWithInput(words, environment, `${key}\n`);
      assert.equal(code, 0, `${command}: ${stderr}`);
    }
    vault.clock.advance(1_000);
    assert.equal((await tenant.send('GET', '/tokens/card', { key })).status, 401);
  });

  test('logs follow prints what is written meanwhile, once, and wrong words are explained', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const environment = environmentOf(vault.place);
    const ofTenant = ['--tenant', tenant.id];
    await tenant.token({ id: 'before', type: 'token', data: 'x' });
    const since = ['--since', formatTimestamp(vault.clock.now())];
    const follow = ['logs', 'follow', '--entity-type', 'token', '--for', '2s', '--json'];
    const following = runWithInput([...follow, ...ofTenant, ...since], environment, '');
    await tenant.token({ id: 'meanwhile', type: 'token', data: 'x' });
    const { code, stdout } = await following;
    assert.equal(code, 0);
    assert.equal(stdout.split('"entity_id":"meanwhile"').length, 2, stdout);
    const key = tenant.key;
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [['logs', 'list', '--actor', 'x'], /unknown option '--actor'/],
      [['logs', 'list', '--result', 'ok'], /--result must be one of success, denied, failed/],
      [['logs', 'list', '--since', '2026-11-24T09:00:00 CET'], /--since must be a date, .* offset/],
      [['logs', 'list', '--container', 'pci'], /--container must begin and end with/],
      [['logs', 'list', '--limit', '0'], /--limit must be a number of entries from 1, or all/],
      [['logs', 'who'], /the TOKEN is required/],
      [['logs', 'what', 'x'], /the KEY must be the id of a key/],
      [['incident', key], /the KEY is the id of a key, not the key itself/],
      [['key', 'revoke', key], /the KEY is the id of a key, not the key itself/],
    ];
    for (const [words, says] of cases) {
      const finished = await runWithInput([...words, ...ofTenant], environment, '');
      assert.equal(finished.code, 2, words.join(' '));
      assert.match(finished.stderr, says);
      assert.ok(!finished.stderr.includes(key));
    }
    const mistyped = await runWithInput(['key', 'find'], environment, `${key}x\n`);
    assert.equal(mistyped.code, 2);
    assert.match(mistyped.stderr, /does not begin with a key/);
  });
});
