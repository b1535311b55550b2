/** What the vault records for its own work: whole or not at all, by both engines alike, and without log entries. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TenantId } from '../../src/base/ids.ts';
import type { Row } from '../../src/store/tables.ts';
import { entriesIn } from '../support/blocks.ts';
import { creation, now, tenant, token } from '../support/changes.ts';
import { onBothEngines } from '../support/engines.ts';

const lease = (holder: string, name = 'a'): Row<'leases'> => ({
  tenant_id: tenant,
  name,
  holder,
  until: now,
});

const sequence = (id: string, last: number): Row<'event_sequences'> => ({
  tenant_id: tenant,
  entity: 'token',
  entity_id: id,
  last,
  ended_at: null,
});

onBothEngines('bookkeeping', (engine) => {
  test('is inserted, amended where it is as it was, and removed, and no entry says so', async (t) => {
    const store = await engine.store(t);
    const key = { tenant_id: tenant, name: 'a' };
    assert.deepEqual(await store.record({ insert: { leases: [lease('one')] } }), {});
    assert.deepEqual(await store.get('leases', key), lease('one'));
    const amended = { ...lease('two'), was_holder: 'one', was_until: now };
    assert.deepEqual(await store.record({ amend: { leases: [amended] } }), {});
    assert.deepEqual(await store.get('leases', key), lease('two'));
    assert.deepEqual(await store.record({ remove: { leases: [key] } }), {});
    assert.equal(await store.get('leases', key), undefined);
    assert.deepEqual(await entriesIn(store), []);
  });

  test('of amendments of one row at the same time exactly one is done', async (t) => {
    const store = await engine.store(t);
    await store.record({ insert: { leases: [lease('none')] } });
    const outcomes = await Promise.all(
      ['a', 'b', 'c', 'd'].map((holder) => {
        const amended = { ...lease(holder), was_holder: 'none', was_until: now };
        return store.record({ amend: { leases: [amended] } });
      }),
    );
    const conflicts = outcomes.filter(({ conflict }) => conflict === 'leases.version');
    assert.equal(conflicts.length, 3);
  });

  test('a part that conflicts undoes all of it, and no neighbour in its group', async (t) => {
    const store = await engine.store(t);
    const missing = { ...sequence('b', 2), was_last: 1 };
    const [conflicting, created, other] = await Promise.all([
      store.record({ insert: { leases: [lease('one')] }, amend: { event_sequences: [missing] } }),
      store.commit(creation(token('t'))),
      store.record({ insert: { event_sequences: [sequence('c', 1)] } }),
    ]);
    assert.ok(conflicting?.conflict);
    assert.deepEqual([created, other], [{}, {}]);
    assert.equal(await store.get('leases', { tenant_id: tenant, name: 'a' }), undefined);
    assert.equal((await entriesIn(store)).length, 1);
  });

  test('what was null is amended only while it is null', async (t) => {
    const store = await engine.store(t);
    const event = {
      tenant_id: tenant as TenantId,
      event_id: 'e' as Row<'events'>['event_id'],
      type: 'token.created',
      entity_id: 't',
      created_at: now,
      sequence: null,
      proof: null,
      charged_to: null,
      body: new Uint8Array([1, 2, 3]),
    };
    await store.record({ insert: { events: [event] } });
    const { tenant_id, event_id } = event;
    const number = (sequence: number) =>
      store.record({
        amend: { events: [{ tenant_id, event_id, sequence, proof: 'p', was_sequence: null }] },
      });
    assert.deepEqual(await number(1), {});
    assert.deepEqual(await number(2), { conflict: 'events.version' });
    const stored = await store.get('events', { tenant_id, event_id });
    assert.deepEqual([stored?.sequence, stored?.proof, stored?.type], [1, 'p', event.type]);
    assert.deepEqual(new Uint8Array(stored?.body ?? []), event.body);
  });
});
