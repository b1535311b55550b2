/** The thread that delivers: while it cannot reach the database, when it dies, and when it has to stop. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { renameSync } from 'node:fs';
import { test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { attemptsOf } from '../../src/webhooks/events/delivery-row.ts';
import { writeCertificate } from '../support/certificate.ts';
import { answer, hang } from '../support/destination.ts';
import { engineOf, onBothEngines } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import { addWebhook, allowing, startReceiver } from '../support/receivers.ts';
import { rowsOf } from '../support/rows.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { startTlsFront } from '../support/tls-front.ts';
import { startVault } from '../support/vault.ts';

test('without the file of its authority it says so once, and delivers when the file is there again', async (t) => {
  const receiver = await startReceiver(t);
  const engine = engineOf('postgres');
  const place = await engine.place(t);
  const certificate = writeCertificate(temporaryDirectory(t));
  const url = new URL(place.databaseUrl ?? '');
  url.port = String(await startTlsFront(t, url.href, certificate));
  url.searchParams.set('sslmode', 'verify-full');
  url.searchParams.set('sslrootcert', certificate.certFile);
  const vault = await startVault(t, engine, {
    place: { ...place, databaseUrl: url.href },
    // Of several, one that has not answered yet could not open its first connection either.
    environment: { ...allowing(t, [receiver]), STRONGROOM_THREADS: '1' },
  });
  const tenant = await newTenant(vault);
  // From now on the thread that answers has all the connections that a create needs.
  await tenant.token({ type: 'token', data: 0 });
  const away = `${certificate.certFile}.away`;
  renameSync(certificate.certFile, away);
  // Where the thread that answers wants a further connection after all, it gets none, and waits for one that it has.
  const persistently = async (work: () => Promise<unknown>) => {
    while (!(await work().then(() => true, isUnavailable))) await nextLook();
  };
  await persistently(() => addWebhook(vault.running.vault, tenant.id, { url: receiver.url }));
  await persistently(() => tenant.token({ type: 'token', data: 1 }));
  const failures = () =>
    vault.logged.filter(({ message }) => /events were not delivered yet/.test(message));
  while (failures().length === 0) await nextLook();
  renameSync(away, certificate.certFile);
  await receiver.until((arrivals) => arrivals.length === 1);
  assert.equal(failures().length, 1);
});

/** @throws any other error. */
function isUnavailable(error: unknown): false {
  assert.match(String(error), /storage|unavailable|503/);
  return false;
}

onBothEngines('the thread that delivers', (engine) => {
  test('is replaced when it dies, and what it had under way arrives', async (t) => {
    const workers: Worker[] = [];
    const record = (worker: Worker) => {
      workers.push(worker);
    };
    process.on('worker', record);
    t.after(() => process.off('worker', record));
    const receiver = await startReceiver(t);
    const vault = await startVault(t, engine, { environment: allowing(t, [receiver]) });
    const tenant = await newTenant(vault);
    receiver.behave(hang);
    await addWebhook(vault.running.vault, tenant.id, { url: receiver.url });
    await tenant.token({ type: 'token', data: 1 });
    await receiver.until((arrivals) => arrivals.length === 1);
    const victim = workers.find(({ threadName }) => threadName === 'delivering');
    assert.ok(victim);
    receiver.behave(answer());
    await Promise.all([once(victim, 'exit'), victim.terminate()]);
    await receiver.until((arrivals) => arrivals.length === 2);
    const [first, again] = receiver.arrivals;
    assert.equal(again?.event.id, first?.event.id);
    const next = (await tenant.token({ type: 'token', data: 2 })).body.id;
    await receiver.until((arrivals) => arrivals.at(-1)?.event.data.token.id === next);
    const { text } = await vault.send('GET', '/metrics', { key: tenant.managementKey });
    assert.match(text, /^strongroom_thread_restarts_total 1$/m);
    const said = vault.logged.filter(({ message }) => /delivers.* is replaced/.test(message));
    assert.equal(said.length, 1);
  });

  test('gives up what hangs when it has to stop, as no attempt, and the next start sends it', async (t) => {
    const receiver = await startReceiver(t);
    const environment = allowing(t, [receiver]);
    const vault = await startVault(t, engine, { environment });
    const tenant = await newTenant(vault);
    receiver.behave(hang);
    await addWebhook(vault.running.vault, tenant.id, { url: receiver.url });
    await tenant.token({ type: 'token', data: 1 });
    await receiver.until((arrivals) => arrivals.length === 1);
    // An attempt has 15 seconds; a stop that waited for its end would find it recorded.
    await vault.stop();
    const rows = await rowsOf(engine, vault.place, 'deliveries');
    assert.deepEqual(
      rows.map((row) => [row.state, attemptsOf(row).length]),
      [['waiting', 0]],
    );
    receiver.behave(answer());
    await startVault(t, engine, { place: vault.place, environment });
    await receiver.until((arrivals) => arrivals.length === 2);
    assert.equal(receiver.arrivals[1]?.event.id, receiver.arrivals[0]?.event.id);
  });
});
