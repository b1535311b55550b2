/** Leases, when clocks are set back or they were written outside the vault. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour, type Instant, instantAfter, parseInstant, second } from '../../src/base/clock.ts';
import { createLeases, leaseMs, leaseMsMax } from '../../src/queue/leases.ts';
import { createQuarantine } from '../../src/rules/quarantine.ts';
import { tenant } from '../support/changes.ts';
import { onBothEngines } from '../support/engines.ts';

const name = 'deliveries';

/** Stands still. */
function stoppedClock() {
  let at: Instant = parseInstant(Date.parse('2026-01-31T12:00:00Z'));
  return {
    now: () => at,
    advance: (ms: number) => {
      at = instantAfter(at, ms);
    },
  };
}

onBothEngines('a lease', (engine) => {
  test('of another server is respected for as long as a server takes one, and no longer', async (t) => {
    const store = await engine.store(t);
    const clock = stoppedClock();
    const until = instantAfter(clock.now(), leaseMsMax);
    const row = { tenant_id: tenant, name, holder: 'another', until };
    await store.record({ insert: { leases: [row] } });
    const leases = createLeases({
      name,
      store,
      clock,
      holder: 'this one',
      quarantine: createQuarantine(assert.fail),
    });
    assert.equal(await leases.hold(tenant), false);
    const longer = {
      ...row,
      until: instantAfter(until, 1),
      was_holder: 'another',
      was_until: until,
    };
    await store.record({ amend: { leases: [longer] } });
    assert.ok(await leases.hold(tenant));
    assert.equal((await store.get('leases', { tenant_id: tenant, name }))?.holder, 'this one');
  });

  test('taken before the clock was set back is renewed, and over before it is', async (t) => {
    const store = await engine.store(t);
    const clock = stoppedClock();
    const leases = createLeases({
      name,
      store,
      clock,
      holder: 'this one',
      quarantine: createQuarantine(assert.fail),
    });
    assert.ok(await leases.hold(tenant));
    clock.advance(-hour);
    assert.equal(leases.isHeld(tenant), false);
    assert.ok(await leases.hold(tenant));
    assert.equal(leases.isHeld(tenant), true);
    const row = await store.get('leases', { tenant_id: tenant, name });
    assert.equal(row?.until, clock.now() + leaseMs);
    clock.advance(leaseMs - second);
    assert.equal(leases.isHeld(tenant), true);
  });
});
