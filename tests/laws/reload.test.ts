/** SIGHUP never ends a server: it takes up renewed files, all of them or none, and no connection is lost. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect as connectSocket, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { readConfig, readReloadable } from '../../src/runtime/config/config.ts';
import { type CertificateFiles, writeCertificate } from '../support/certificate.ts';
import { engineOf } from '../support/engines.ts';
import { environmentOf, spawnVault, untilOutput, type VaultProcess } from '../support/process.ts';
import { createApplication, request } from '../support/vault.ts';

/** So many that with two threads both have been met; the chance that one was not is one in a million. */
const connections = 20;

const renewed = /reload: what was read again is in use; changed: the certificate"/;

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
    /"level":50,[^\n]*reload: all settings in use stay\. STRONGROOM_TLS_KEY names a key that does not belong/,
  );
  const socket = await connectTo(vault, first.cert);
  assert.equal(socket.getPeerX509Certificate()?.fingerprint256, fingerprintOf(first.cert));
  socket.destroy();
  use(second);
  hangUp(vault);
  await untilOutput(vault, renewed);
  (await connectTo(vault, second.cert)).destroy();
});

test('without a file that changed it is a line and nothing else', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const vault = await spawnVault(t, environmentOf(place));
  hangUp(vault);
  await untilOutput(vault, /reload: [^\n]*changed: nothing/);
  await createApplication(vault.url);
  assert.equal((await request(`${vault.url}/readyz`, 'GET')).status, 200);
});

const threePerAddress = {
  limits: [{ per: ['address'], routes: ['GET /tokens'], requests: 3, window_seconds: 86_400 }],
};

for (const threads of ['1', '2']) {
  test(`STRONGROOM_CONFIG: a reload changes limits, proxies and level on all of ${threads} threads`, async (t) => {
    const { vault, write } = await startWithFile(t, threads, { rate_limits: 'off' });
    const open = await connectPlainly(vault);
    open.write('GET /healthz HTTP/1.1\r\nhost: a\r\n');
    const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });
    const list = (address: string) => request(`${vault.url}/tokens`, 'GET', from(address));
    for (let count = 0; count < 6; count += 1) assert.equal((await list('192.0.2.1')).status, 401);
    assert.doesNotMatch(vault.output(), /"level":20,/);

    write({ log_level: 'debug', trusted_proxies: ['127.0.0.1'], rate_limits: threePerAddress });
    hangUp(vault);
    await untilOutput(vault, /changed: the log level, the rate limits, the trusted proxies"/);
    const statuses = async (address: string) => {
      const received: number[] = [];
      for (let count = 0; count < 5; count += 1) received.push((await list(address)).status);
      return received;
    };
    assert.deepEqual(await statuses('192.0.2.1'), [401, 401, 401, 429, 429]);
    assert.deepEqual(await statuses('192.0.2.2'), [401, 401, 401, 429, 429]);
    await untilOutput(vault, /"level":20,/);

    write({ log_level: 'debug', trusted_proxies: ['127.0.0.1'], rate_limits: threePerAddress });
    hangUp(vault);
    await untilOutput(vault, /changed: nothing"/);
    assert.equal((await list('192.0.2.1')).status, 429, 'a rule that stays goes on counting');

    open.write('connection: close\r\n\r\n');
    assert.match(await allOf(open), /^HTTP\/1\.1 200 /);
    vault.terminate();
    const { code, stdout } = await vault.finished;
    assert.equal(code, 0);
    assert.equal(stdout.match(/"msg":"reload: /g)?.length, 2, 'each reload is one line');
    assert.equal(stdout.match(/"msg":"Strongroom stops: it received SIGTERM"/g)?.length, 1);
  });
}

test('a file that is broken, or names what does not exist, changes nothing, and one line says why', async (t) => {
  const { vault, write } = await startWithFile(t, '2', { rate_limits: threePerAddress });
  const unknown = {
    limits: [{ per: ['address'], routes: ['GET /tokns'], requests: 1, window_seconds: 1 }],
  };
  const broken: readonly (readonly [unknown, RegExp])[] = [
    ['{', /STRONGROOM_CONFIG names a file that is not JSON\./],
    [
      { log_levl: 'info' },
      /STRONGROOM_CONFIG names a file in which log_levl is not a known attribute\./,
    ],
    [
      { log_level: 'secret' },
      /in which log_level must be one of debug, info, warn, error, silent\./,
    ],
    [{ trusted_proxies: ['10.0.0.0/33'] }, /in which trusted_proxies must be a list of addresses/],
    [{ rate_limits: 'of' }, /in which rate_limits must be one of off, legacy-2024/],
    [{ rate_limits: { limits: [{}] } }, /in which rate_limits\.limits\[0\]\.per is required/],
    [
      { log_level: 'silent', rate_limits: unknown },
      /rate_limits in the file of STRONGROOM_CONFIG names routes that do not exist: GET \/tokns\./,
    ],
  ];
  for (const [content, problem] of broken) {
    write(content);
    hangUp(vault);
    const line = `"level":50,[^\\n]*reload: all settings in use stay\\. [^\\n]*${problem.source}`;
    await untilOutput(vault, new RegExp(line));
  }
  for (let count = 0; count < 3; count += 1) {
    assert.equal((await request(`${vault.url}/tokens`, 'GET')).status, 401);
  }
  assert.equal((await request(`${vault.url}/tokens`, 'GET')).status, 429);
  assert.equal(vault.output().match(/reload: /g)?.length, broken.length);
  assert.doesNotMatch(vault.output(), /secret/);
});

test('a start with such a file is refused, and a variable wins over the file', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const file = join(place.dataDir, 'strongroom.json');
  mkdirSync(place.dataDir, { recursive: true });
  writeFileSync(file, JSON.stringify({ log_level: 'debug', trusted_proxies: ['10.0.0.1'] }));
  const ofFile = readReloadable({ STRONGROOM_CONFIG: file });
  assert.equal(ofFile.logLevel, 'debug');
  assert.deepEqual(ofFile.trustedProxies, ['10.0.0.1']);
  const both = readReloadable({
    STRONGROOM_CONFIG: file,
    STRONGROOM_LOG_LEVEL: 'warn',
    STRONGROOM_TRUSTED_PROXIES: '10.0.0.2',
    STRONGROOM_RATE_LIMITS: 'off',
  });
  assert.equal(both.logLevel, 'warn');
  assert.deepEqual(both.trustedProxies, ['10.0.0.2']);
  assert.deepEqual(both.rateLimits.rules, []);
  writeFileSync(file, '{');
  assert.throws(
    () => readConfig({ STRONGROOM_CONFIG: file }),
    /^ConfigError: STRONGROOM_CONFIG names a file that is not JSON/,
  );
  assert.throws(
    () => readConfig({ STRONGROOM_CONFIG: join(place.dataDir, 'none') }),
    /^ConfigError: STRONGROOM_CONFIG names a file that cannot be read/,
  );
});

/** A vault with a file of these settings, and how to write others into it. */
async function startWithFile(t: TestContext, threads: string, settings: unknown) {
  const place = await engineOf('sqlite').place(t);
  mkdirSync(place.dataDir, { recursive: true });
  const file = join(place.dataDir, 'strongroom.json');
  const write = (content: unknown) =>
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  write(settings);
  const environment = { STRONGROOM_CONFIG: file, STRONGROOM_THREADS: threads };
  return { vault: await spawnVault(t, environmentOf(place, environment)), write };
}

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

async function connectPlainly({ url }: VaultProcess): Promise<Socket> {
  const socket = connectSocket({ host: '127.0.0.1', port: Number(new URL(url).port) });
  await once(socket, 'connect');
  return socket;
}

async function allOf(socket: Socket): Promise<string> {
  let text = '';
  for await (const chunk of socket.setEncoding('utf8')) text += chunk;
  return text;
}
