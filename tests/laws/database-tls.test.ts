/** The way to PostgreSQL: beyond loopback only to a server that proves who it is. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { writeCertificate } from '../support/certificate.ts';
import { engineOf } from '../support/engines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { startTlsFront } from '../support/tls-front.ts';
import { startVault } from '../support/vault.ts';

/** A server with TLS for `localhost` and 127.0.0.1, and the same one without. */
async function twoWays(t: TestContext) {
  const place = await engineOf('postgres').place(t);
  const { databaseUrl = '' } = place;
  const certificate = writeCertificate(temporaryDirectory(t));
  const port = await startTlsFront(t, databaseUrl, certificate);
  const at = (host: string, { tls }: { tls: boolean }) => {
    const url = new URL(databaseUrl);
    url.hostname = host;
    if (tls) url.port = String(port);
    return url.href;
  };
  const serve = (url: string) =>
    runCommand(['tenant', 'list'], environmentOf({ ...place, databaseUrl: url }));
  const vault = (databaseUrl: string, environment = {}) =>
    startVault(t, engineOf('postgres'), { place: { ...place, databaseUrl }, environment });
  return { at, serve, vault, authority: `sslrootcert=${encodeURIComponent(certificate.certFile)}` };
}

test('a server that proves itself by the given authority is used, by name and by address', async (t) => {
  const { at, vault, authority } = await twoWays(t);
  for (const host of ['127.0.0.1', 'localhost']) {
    const running = await vault(`${at(host, { tls: true })}?sslmode=verify-full&${authority}`);
    assert.equal((await running.send('GET', '/readyz')).status, 200);
    await running.stop();
  }
});

test('a server without TLS, of an unknown authority or of another name is refused with what to do', async (t) => {
  const { at, serve, authority } = await twoWays(t);
  const secret = new URL(at('127.0.0.1', { tls: true })).password;
  // 0.0.0.0 reaches this machine and is not loopback.
  const refusals: readonly (readonly [string, RegExp])[] = [
    [at('0.0.0.0', { tls: false }), /names a server that does not offer TLS/],
    [at('0.0.0.0', { tls: true }), /cannot be verified \(DEPTH_ZERO_SELF_SIGNED_CERT\)/],
    [
      `${at('0.0.0.0', { tls: true })}?sslmode=require&${authority}`,
      /cannot be verified \(ERR_TLS_CERT_ALTNAME_INVALID\)/,
    ],
    [`${at('0.0.0.0', { tls: true })}?sslmode=disable`, /must not have sslmode=disable/],
    [
      `${at('0.0.0.0', { tls: true })}?sslrootcert=/none`,
      /sslrootcert names a file that cannot be read/,
    ],
  ];
  for (const [url, says] of refusals) {
    const { code, stderr } = await serve(url);
    assert.equal(code, 1, stderr);
    assert.match(stderr, says);
    assert.match(stderr, /STRONGROOM_DATABASE_URL/);
    assert.ok(secret === '' || !stderr.includes(secret));
  }
});

test('STRONGROOM_DATABASE_TLS=off lets it be reached in clear', async (t) => {
  const { at, vault } = await twoWays(t);
  const running = await vault(at('0.0.0.0', { tls: false }), { STRONGROOM_DATABASE_TLS: 'off' });
  assert.equal((await running.send('GET', '/readyz')).status, 200);
});
