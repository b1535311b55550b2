/** The hash chain of the audit log: its exact bytes, and how it grows. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { Instant } from '../../src/lib/clock.ts';
import type { TenantId } from '../../src/lib/ids.ts';
import {
  entryHash,
  follows,
  LogChain,
  type StatedEntry,
  seedHead,
  streamSeed,
} from '../../src/lib/log-chain/entries.ts';

const tenant = '00000000-0000-4000-8000-000000000001' as TenantId;
const other = '00000000-0000-4000-8000-000000000002' as TenantId;
const stream = '00000000-0000-4000-8000-00000000000a';

const entry: StatedEntry = {
  tenant_id: tenant,
  created_at: 1_800_000_000_000 as Instant,
  actor_id: null,
  actor_type: 'system',
  entity_type: 'token',
  entity_id: 'über "das" \\ ☃',
  operation: 'read',
  message: 'Token retrieved',
  result: 'success',
  origin: '127.0.0.1',
  trace_id: null,
  state: null,
};

const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

// The texts are those of docs/audit.md, by which others write their own verifier.
test('the seed and the hash are SHA-256 over the texts that are documented', () => {
  const seed = sha256(`["strongroom log stream",1,"${tenant}","${stream}"]`);
  assert.equal(streamSeed(tenant, stream), seed);
  const fields =
    `["${tenant}","${stream}",1,1800000000000,null,"system","token",` +
    '"über \\"das\\" \\\\ ☃","read","Token retrieved","success","127.0.0.1",null]';
  const placed = { ...entry, stream_id: stream, seq: 1 };
  assert.equal(entryHash(seed, placed), sha256(seed + fields));
  const stated = `${fields.slice(0, -1)},"+1.AAECAw"]`;
  assert.equal(entryHash(seed, { ...placed, state: '+1.AAECAw' }), sha256(seed + stated));
});

test('the hash depends on every field, on the place and on all before', () => {
  const placed = { ...entry, stream_id: stream, seq: 1 };
  const original = entryHash('a', placed);
  const changes = [
    ...Object.keys(entry).map((name) => ({ [name]: 'changed' })),
    { stream_id: 'changed' },
    { seq: 2 },
    { actor_id: '' },
    { trace_id: '' },
    { created_at: entry.created_at + 1 },
  ];
  const hashes = changes.map((change) => entryHash('a', { ...placed, ...change } as typeof placed));
  assert.equal(new Set([original, entryHash('b', placed), ...hashes]).size, changes.length + 2);
});

test('fields cannot move into one another', () => {
  const placed = { ...entry, stream_id: stream, seq: 1 };
  const hashes = [
    entryHash('a', { ...placed, entity_id: 'x","y', operation: 'z' }),
    entryHash('a', { ...placed, entity_id: 'x', operation: 'y","z' }),
    entryHash('a', { ...placed, entity_id: 'x","y","z', operation: '' }),
  ];
  assert.equal(new Set(hashes).size, hashes.length);
});

test('entries of a tenant are numbered from 1 and each follows the one before', () => {
  const chain = new LogChain(stream);
  let head = seedHead(tenant, stream);
  for (let seq = 1; seq <= 5; seq += 1) {
    const chained = chain.append(entry);
    assert.equal(chained.seq, seq);
    assert.equal(follows(head, chained), true);
    assert.equal(follows(head, { ...chained, message: 'changed' }), false);
    head = chained;
  }
  assert.equal(chain.append({ ...entry, tenant_id: other }).seq, 1);
  assert.equal(chain.append(entry).seq, 6);
});

test('a group that is dropped leaves no trace, and one that is adopted is continued', () => {
  const chain = new LogChain(stream);
  const first = chain.append(entry);
  chain.fork().append(entry);
  const group = chain.fork();
  const change = group.fork();
  const second = change.append(entry);
  assert.equal(follows(first, second), true);
  group.adopt(change);
  group.fork().append(entry);
  const third = group.append(entry);
  chain.adopt(group);
  assert.equal(follows(second, third), true);
  assert.equal(follows(third, chain.append(entry)), true);
});

test('streams of one tenant, and tenants of one stream, cannot be swapped', () => {
  const first = new LogChain(stream).append(entry);
  const elsewhere = { ...first, stream_id: 'another' };
  assert.equal(follows(seedHead(tenant, 'another'), elsewhere), false);
  assert.equal(follows(seedHead(other, stream), { ...first, tenant_id: other }), false);
});
