/** An entry in OCSF has the attributes that its class requires, and loses nothing that the log says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatOcsf } from '../../src/audit/ocsf.ts';
import { parseInstant } from '../../src/base/clock.ts';
import type { TenantId } from '../../src/base/ids.ts';
import { type ChainedEntry, noSource } from '../../src/store/log-chain/entries.ts';

const entry: ChainedEntry = {
  tenant_id: '00000000-0000-4000-8000-000000000001' as TenantId,
  stream_id: 'stream',
  seq: 7,
  hash: 'abc',
  created_at: parseInstant(1_795_270_300_110),
  actor_id: 'application',
  actor_type: 'application',
  entity_type: 'token',
  entity_id: 'one',
  operation: 'read',
  message: 'Token retrieved',
  result: 'success',
  disclosure: 'rg',
  origin: '198.51.100.1',
  trace_id: 'trace',
  source: { ...noSource, key_id: 'key', user_agent: 'curl/8' },
  container: '/pci/',
  state: null,
};

const ocsf = (changed: Partial<ChainedEntry> = {}) =>
  JSON.parse(formatOcsf({ ...entry, ...changed }));

/** Of API Activity in OCSF 1.3.0; `cloud` and `osint` belong to profiles. */
const required = ['activity_id', 'actor', 'api', 'category_uid', 'class_uid', 'metadata'];
const requiredToo = ['severity_id', 'src_endpoint', 'time', 'type_uid'];

test('an entry is an API Activity, with who, what, where, and how it was shown', () => {
  const event = ocsf();
  for (const name of [...required, ...requiredToo]) assert.ok(name in event, name);
  assert.equal(event.type_uid, 600_302);
  assert.equal(event.time, entry.created_at);
  assert.equal(event.status, 'Success');
  assert.deepEqual(event.src_endpoint, { ip: '198.51.100.1' });
  assert.equal(event.actor.app_uid, 'application');
  assert.equal(event.api.operation, 'token.read');
  assert.deepEqual(event.resources, [{ type: 'token', uid: 'one' }]);
  assert.equal(event.metadata.uid, 'stream:7');
  assert.equal(event.metadata.tenant_uid, entry.tenant_id);
  const { key_id, shown, through, container, hash } = event.unmapped;
  assert.deepEqual(
    { key_id, shown, through, container, hash },
    { key_id: 'key', shown: 'revealed', through: 'get', container: '/pci/', hash: 'abc' },
  );
});

test('a refusal is a failure of medium severity, and an operation without a number is Other', () => {
  const event = ocsf({ result: 'denied', operation: 'export' });
  assert.equal(event.status_id, 2);
  assert.equal(event.status_detail, 'denied');
  assert.equal(event.severity, 'Medium');
  assert.equal(event.type_uid, 600_399);
});

test('an alert is a Detection Finding', () => {
  const event = ocsf({ entity_type: 'alert', entity_id: 'key', operation: 'honey_token' });
  assert.equal(event.type_uid, 200_401);
  assert.equal(event.severity, 'High');
  assert.equal(event.is_alert, true);
  assert.deepEqual(event.finding_info.types, ['alert.honey_token']);
});

test('a session names its application, and what the vault does itself has no address', () => {
  const source = { ...noSource, application_id: 'public' };
  const { actor } = ocsf({ actor_type: 'session', actor_id: 'session', source });
  assert.deepEqual(actor, { app_name: 'session', app_uid: 'public', session: { uid: 'session' } });
  const system = ocsf({ actor_type: 'system', actor_id: null, origin: null, source: noSource });
  assert.deepEqual(system.src_endpoint, { name: 'strongroom' });
});
