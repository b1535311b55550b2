/** Whoever can delete the note that a log has grown does not keep its checkpoint back, and is noticed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOwnNotes, nameOf } from '../../../src/audit/own-notes.ts';
import { day, minute } from '../../../src/base/clock.ts';
import { signUnnotedLogs } from '../../../src/runtime/jobs/sign-unnoted-logs.ts';
import { type Engine, onBothEngines } from '../../support/engines.ts';
import { signCheckpoints } from '../../support/logs.ts';
import { newTenant, type TestTenant } from '../../support/tenant.ts';
import { createStillClock, startVault, type TestVault } from '../../support/vault.ts';

const gone = (tenant: TestTenant) => ({
  code: 'integrity',
  message: new RegExp(`^the note that the log of tenant ${tenant.id} has grown is not in the`),
});

const removeNotes = (engine: Engine, { place }: TestVault, { id }: TestTenant) =>
  engine.run(place, `delete from due_work where work = 'checkpoint' and tenant_id = '${id}'`);

const checkpoints = async (tenant: TestTenant) => (await tenant.rows('checkpoints')).length;

onBothEngines('a note that somebody deletes', (engine) => {
  for (const threads of ['1', '2']) {
    test(`keeps no checkpoint back and is an alert, each time, with ${threads} threads`, async (t) => {
      const environment = { STRONGROOM_THREADS: threads };
      const vault = await startVault(t, engine, { environment });
      const tenant = await newTenant(vault);
      await signCheckpoints(vault);
      for (const signed of [2, 3]) {
        await tenant.token({ type: 'token', data: 'x' });
        await removeNotes(engine, vault, tenant);
        await assert.rejects(signCheckpoints(vault), gone(tenant));
        assert.equal(await checkpoints(tenant), signed);
      }
    });
  }

  test('is there again, so that a restart forgets nothing', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await removeNotes(engine, vault, tenant);
    await assert.rejects(signCheckpoints(vault), gone(tenant));
    await signCheckpoints(vault);
    const notes = (await tenant.rows('due_work')).filter(({ work }) => work === 'checkpoint');
    assert.ok(notes.length > 0);
  });

  test('after another server signed what it stood for is no alert', async (t) => {
    const vault = await startVault(t, engine, { clock: createStillClock() });
    const tenant = await newTenant(vault);
    await signCheckpoints(vault);
    vault.clock.advance(15 * minute);
    await removeNotes(engine, vault, tenant);
    assert.equal(await signCheckpoints(vault), 0);
  });
});

onBothEngines('the look for forgotten logs', (engine) => {
  test('signs within a day what no note and no memory says, and is an alert', async (t) => {
    const vault = await startVault(t, engine);
    const { ownNotes, ...tools } = vault.running.vault;
    const job = signUnnotedLogs({
      ...tools,
      timer: { now: () => 0, pause: async () => undefined },
    });
    const run = () => job.run(new AbortController().signal);
    const [known, forgotten] = [await newTenant(vault), await newTenant(vault)];
    await removeNotes(engine, vault, forgotten);
    assert.equal(await run(), 0);
    vault.clock.advance(day);
    await assert.rejects(run(), {
      code: 'integrity',
      message: new RegExp(`^the log of tenant ${forgotten.id} had grown, and no note said so`),
    });
    assert.deepEqual([await checkpoints(known), await checkpoints(forgotten)], [1, 1]);
    vault.clock.advance(day);
    assert.equal(await run(), 0);
  });
});

test('notes in memory are bounded, and go when their time is over', () => {
  const notes = createOwnNotes(2);
  const note = (due_at: number) =>
    ({ tenant_id: 't', work: 'checkpoint', due_at }) as unknown as Parameters<typeof nameOf>[0];
  for (const due_at of [1, 2, 3]) notes.add(note(due_at));
  assert.deepEqual([...notes.all().keys()], [nameOf(note(2)), nameOf(note(3))]);
  notes.forget(note(2).due_at);
  assert.deepEqual([...notes.all().keys()], [nameOf(note(3))]);
});
