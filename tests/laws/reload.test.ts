/** SIGHUP never ends a server: it takes up a renewed certificate, and no connection is lost. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { type CertificateFiles, writeCertificate } from '../support/certificate.ts';
import { engineOf } from '../support/engines.ts';
import { environmentOf, spawnVault, untilOutput, type VaultProcess } from '../support/process.ts';
import { createApplication, request } from '../support/vault.ts';

/** So many that with two threads both have been met; the chance that one was not is one in a million. */
const connections = 20;

const renewed = /new connections use the certificate and the key that were read again/;

const fingerprintOf = (pem: string) => new X509Certificate(pem).fingerprint256;

for (const threads of ['1', '2']) {
  test(`SIGHUP: all of ${threads} threads use the renewed certificate, and open connections stay`, async (t) => {
    const { vault, first, second, use } = await startWithTls(t, threads);
    const open = await connectTo(vault, first.cert);
    open.write('GET /healthz HTTP/1.1\r\nhost: a\r\n');

    use(second);
    hangUp(vault);
    await untilOutput(vault, renewed);

    for (let count = 0; count < connections; count += 1) {
      const socket = await connectTo(vault, second.cert);
      assert.equal(socket.getPeerX509Certificate()?.fingerprint256, fingerprintOf(second.cert));
      socket.destroy();
    }
    open.write('connection: close\r\n\r\n');
    assert.match(await allOf(open), /^HTTP\/1\.1 200 /);
    vault.terminate();
    assert.equal((await vault.finished).code, 0);
  });
}

test('after a pair that does not match the one in use stays, and a line names the variable', async (t) => {
  const { vault, first, second, use } = await startWithTls(t, '2');
  use({ ...second, keyFile: first.keyFile });
  hangUp(vault);
  await untilOutput(
    vault,
    /"level":50,[^\n]*the certificate and the key in use stay\. STRONGROOM_TLS_KEY names a key that does not belong/,
  );
  const socket = await connectTo(vault, first.cert);
  assert.equal(socket.getPeerX509Certificate()?.fingerprint256, fingerprintOf(first.cert));
  socket.destroy();
  use(second);
  hangUp(vault);
  await untilOutput(vault, renewed);
  (await connectTo(vault, second.cert)).destroy();
});

test('without TLS it is a line and nothing else', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const vault = await spawnVault(t, environmentOf(place));
  hangUp(vault);
  await untilOutput(vault, /reload: there is nothing to read again/);
  await createApplication(vault.url);
  assert.equal((await request(`${vault.url}/readyz`, 'GET')).status, 200);
});

async function startWithTls(t: TestContext, threads: string) {
  const place = await engineOf('sqlite').place(t);
  const [first, second] = ['first', 'second'].map((name) => {
    const directory = join(place.dataDir, name);
    mkdirSync(directory, { recursive: true });
    return writeCertificate(directory);
  }) as [CertificateFiles, CertificateFiles];
  const [certFile, keyFile] = ['tls.crt', 'tls.key'].map((name) => join(place.dataDir, name)) as [
    string,
    string,
  ];
  const use = (files: Pick<CertificateFiles, 'certFile' | 'keyFile'>) => {
    copyFileSync(files.certFile, certFile);
    copyFileSync(files.keyFile, keyFile);
  };
  use(first);
  const environment = {
    STRONGROOM_TLS_CERT: certFile,
    STRONGROOM_TLS_KEY: keyFile,
    STRONGROOM_THREADS: threads,
  };
  const vault = await spawnVault(t, environmentOf(place, environment));
  assert.notEqual(readFileSync(first.certFile, 'utf8'), readFileSync(second.certFile, 'utf8'));
  return { vault, first, second, use };
}

function hangUp({ pid }: VaultProcess): void {
  process.kill(pid, 'SIGHUP');
}

async function connectTo({ url }: VaultProcess, ca: string): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), ca });
  await once(socket, 'secureConnect');
  return socket;
}

async function allOf(socket: TLSSocket): Promise<string> {
  let text = '';
  for await (const chunk of socket.setEncoding('utf8')) text += chunk;
  return text;
}
