/** Failed authentication is in the log, and an attacker cannot fill the disk with it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createFailedAuthentication,
  loggedMax,
  loggedPerSourceMax,
  windowMs,
} from '../../src/access/failed-authentication.ts';
import { type KeyId, newUuid, type TenantId } from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import type { Origin } from '../../src/rules/caller.ts';
import type { Row } from '../../src/store/tables.ts';
import { engineOf, onBothEngines } from '../support/engines.ts';
import { rowsOf } from '../support/rows.ts';
import {
  createTestClock,
  managementKey,
  recorder,
  startVault,
  type TestVault,
} from '../support/vault.ts';

const wrongKey = 'key_test_pvt_00000000000000000000000000000000000000000000000000';
const message = 'a request failed to authenticate';

const from = (address: string): Origin => ({ address, traceId: 'trace', dialect: 'SVC' });

async function fixture(t: Parameters<typeof startVault>[0]) {
  const clock = createTestClock();
  const logged: TestVault['logged'] = [];
  const store = await engineOf('sqlite').store(t);
  const onFailure = createFailedAuthentication({ store, clock, log: recorder(logged) });
  const told = () => logged.filter((line) => line.message === message);
  return { clock, logged, onFailure, told };
}

onBothEngines('failed authentication', (engine) => {
  test('the log of the operator has the address and the trace id, and no key', async (t) => {
    const vault = await startVault(t, engine);
    const headers = { 'svc-trace-id': 'trace-7' };
    await vault.send('GET', '/tokens/a', { key: wrongKey, headers });
    await vault.send('GET', '/tokens/a', { headers });
    const lines = vault.logged.filter((line) => line.message === message);
    const fields = { address: '127.0.0.1', trace_id: 'trace-7' };
    assert.deepEqual(
      lines.map((line) => line.fields),
      [fields, fields],
    );
    assert.equal(JSON.stringify(vault.logged).includes(wrongKey), false);
  });

  test('the log of the tenant records an expired session', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application({ type: 'public', permissions: ['token:create'] });
    const session = await vault.send('POST', '/sessions', { key });
    vault.clock.advance(4 * 60_000);
    const sent = { key: session.body.session_key, headers: { 'svc-trace-id': 'trace-8' } };
    assert.equal((await vault.send('GET', '/tokens/a', sent)).status, 401);
    const entries = await rowsOf(engine, vault.place, 'logs');
    const failures = entries.filter((entry) => entry.operation === 'authenticate');
    const created = entries.find(
      (entry) => entry.entity_type === 'session' && entry.operation === 'create',
    );
    assert.equal(failures.length, 1);
    const [failure] = failures;
    assert.equal(failure?.entity_id, created?.entity_id);
    assert.equal(failure?.result, 'denied');
    assert.equal(failure?.actor_id, null);
    assert.equal(failure?.trace_id, 'trace-8');
    assert.equal(failure?.origin, '127.0.0.1');
  });
});

onBothEngines('failed authentication after many with keys that do not exist', (engine) => {
  test('of a key that was valid says so, however many guesses come from the address', async (t) => {
    const environment = { STRONGROOM_RATE_LIMITS: 'legacy-2024' };
    const vault = await startVault(t, engine, { environment });
    const application = { name: 'a', type: 'private', permissions: ['token:read'] };
    const sent = { key: managementKey, body: application };
    const { body } = await vault.send('POST', '/applications', sent);
    const statusOf = async (key: string) => (await vault.send('GET', '/tokens/a', { key })).status;
    assert.equal(await statusOf(body.key), 404);
    await vault.send('DELETE', `/applications/${body.id}`, { key: managementKey });
    for (let at = 0; at < 100; at++) assert.equal(await statusOf(body.key), 401);
    assert.equal(await statusOf(wrongKey), 401, 'none of them was counted');
    const guesses = new Set<number>();
    for (let at = 0; at < 100; at++) guesses.add(await statusOf(wrongKey));
    assert.deepEqual([...guesses], [401, 429]);
    assert.equal(await statusOf(body.key), 401);
  });

  test('is in the log of the tenant whose key is presented', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application({ type: 'public', permissions: ['token:create'] });
    const session = await vault.send('POST', '/sessions', { key });
    vault.clock.advance(4 * 60_000);
    for (let time = 0; time < loggedPerSourceMax; time += 1) {
      await vault.send('GET', '/tokens/a', { key: wrongKey });
    }
    const sent = { key: session.body.session_key };
    assert.equal((await vault.send('GET', '/tokens/a', sent)).status, 401);
    const entries = await rowsOf(engine, vault.place, 'logs');
    const failures = entries.filter((entry) => entry.operation === 'authenticate');
    assert.equal(failures.length, 1);
  });
});

test('a key that was altered is told of after many that do not exist, or are over', async (t) => {
  const { logged, onFailure } = await fixture(t);
  const key = {
    tenant_id: newUuid<TenantId>(pooledRandom()),
    key_id: newUuid<KeyId>(pooledRandom()),
    session_id: null,
  } as Row<'api_keys'>;
  for (let time = 0; time < loggedPerSourceMax; time += 1) {
    await onFailure(from('10.0.0.1'), undefined);
    await onFailure(from('10.0.0.1'), key);
  }
  await onFailure(from('10.0.0.1'), key, 'altered');
  const altered = logged.filter(({ message: text }) => text.startsWith('a stored key was altered'));
  assert.equal(altered.length, 1);
});

test('an address is told of so often in a minute, and others besides it', async (t) => {
  const { clock, logged, onFailure, told } = await fixture(t);
  for (let time = 0; time < loggedPerSourceMax + 7; time += 1) {
    await onFailure(from('10.0.0.1'), undefined);
  }
  assert.equal(told().length, loggedPerSourceMax);
  await onFailure(from('10.0.0.2'), undefined);
  assert.equal(told().length, loggedPerSourceMax + 1);
  clock.advance(windowMs);
  await onFailure(from('10.0.0.1'), undefined);
  assert.equal(told().length, loggedPerSourceMax + 2);
  assert.deepEqual(
    logged.flatMap(({ fields }) => fields?.count ?? []),
    [7],
  );
});

test('all addresses together are logged a limited number of times a minute', async (t) => {
  const { onFailure, told } = await fixture(t);
  for (let host = 0; host < 3 * loggedMax; host += 1) {
    await onFailure(from(`10.1.${host >> 8}.${host & 255}`), undefined);
  }
  assert.equal(told().length, loggedMax);
});

test('the addresses of one IPv6 network count as one', async (t) => {
  const { onFailure, told } = await fixture(t);
  const same = ['2001:db8::1', '2001:db8:0:0:1:2:3:4', '2001:db8::ffff:0:1', '2001:db8:0:0::5'];
  for (let time = 0; time < loggedPerSourceMax; time += 1) {
    for (const address of same) await onFailure(from(address), undefined);
  }
  assert.equal(told().length, loggedPerSourceMax);
  for (const other of ['2001:db8:0:1::1', '::1', '::ffff:10.0.0.1']) {
    await onFailure(from(other), undefined);
  }
  assert.equal(told().length, loggedPerSourceMax + 3);
});

test('an IPv4 address counts as one, however it is written', async (t) => {
  const { onFailure, told } = await fixture(t);
  const same = ['10.0.0.1', '::ffff:10.0.0.1', '::ffff:0a00:0001'];
  for (let time = 0; time < loggedPerSourceMax; time += 1) {
    for (const address of same) await onFailure(from(address), undefined);
  }
  assert.equal(told().length, loggedPerSourceMax);
});
