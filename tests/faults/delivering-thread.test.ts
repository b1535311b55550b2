/** The thread that delivers, while it cannot reach the database. */
import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { test } from 'node:test';
import { writeCertificate } from '../support/certificate.ts';
import { engineOf } from '../support/engines.ts';
import { addWebhook, allowing, startReceiver } from '../support/receivers.ts';
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
    environment: allowing(t, [receiver]),
  });
  const tenant = await newTenant(vault);
  const away = `${certificate.certFile}.away`;
  renameSync(certificate.certFile, away);
  await addWebhook(vault.running.vault, tenant.id, { url: receiver.url });
  await tenant.token({ type: 'token', data: 1 });
  const failures = () =>
    vault.logged.filter(({ message }) => /events were not delivered yet/.test(message));
  while (failures().length === 0) await new Promise((resolve) => setImmediate(resolve));
  renameSync(away, certificate.certFile);
  await receiver.until((arrivals) => arrivals.length === 1);
  assert.equal(failures().length, 1);
});
