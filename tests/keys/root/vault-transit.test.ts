/** A root key in HashiCorp Vault or OpenBao never leaves it, and each failure of the service is a clear error. */
import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createPlainServer } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { after, before, describe, it, type TestContext } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { isIntegrityError, VaultError } from '../../../src/base/errors.ts';
import { isObject } from '../../../src/base/json.ts';
import { pooledRandom } from '../../../src/base/random.ts';
import { type RootKey, RootKeyError } from '../../../src/keys/root/root-key.ts';
import { vaultTransit } from '../../../src/keys/root/vault-transit.ts';
import { writeCertificate } from '../../support/certificate.ts';
import { type OpenBao, rootToken, startOpenBao, withoutOpenBao } from '../../support/openbao.ts';
import { nextLook } from '../../support/poll.ts';
import { freePort, temporaryDirectory } from '../../support/temporary.ts';

const key = createSecretKey(Buffer.alloc(32, 7));
const context = { vault: 'b6a4f1f2-2b8e-4a26-8d0f-6d2b4ce1a001', tenant: 'a tenant' };

describe('a root key in the Transit engine', { skip: withoutOpenBao }, () => {
  let bao: OpenBao;
  const ends: (() => void | Promise<void>)[] = [];
  before(async () => {
    bao = await startOpenBao({ after: (end) => ends.push(end) });
  });
  after(async () => {
    for (const end of ends) await end();
  });

  const opened = (t: TestContext, variables: Record<string, string> = {}) =>
    open(t, { VAULT_ADDRESS: bao.address, VAULT_TOKEN: rootToken, ...variables });

  it('unwraps what it wrapped, for the same vault and tenant alone', async (t) => {
    const root = await opened(t);
    const wrapped = await root.wrap(key, context);
    assert.deepEqual(
      { source: wrapped.source, keyId: wrapped.keyId, version: wrapped.version },
      { source: 'vault-transit', keyId: 'transit/keys/strongroom', version: 1 },
    );
    assert.ok((await root.unwrap(wrapped, context)).equals(key));
    for (const other of [
      { ...context, tenant: 'another tenant' },
      { ...context, vault: 'another vault' },
      { vault: `${context.vault}${context.tenant}`, tenant: '' },
    ]) {
      await assert.rejects(root.unwrap(wrapped, other), isIntegrityError);
    }
  });

  it('refuses a blob with any altered byte', async (t) => {
    const root = await opened(t);
    const wrapped = await root.wrap(key, context);
    for (const at of wrapped.blob.keys()) {
      const blob = Uint8Array.from(wrapped.blob);
      blob[at] = (blob[at] ?? 0) ^ 1;
      await assert.rejects(root.unwrap({ ...wrapped, blob }, context), VaultError);
    }
  });

  it('wraps under the newest version and unwraps under older ones', async (t) => {
    const root = await opened(t);
    const first = await root.wrap(key, context);
    await bao.call('transit/keys/strongroom/rotate', {});
    const { version } = await root.current();
    assert.equal(version, first.version + 1);
    assert.equal((await root.wrap(key, context)).version, version);
    assert.ok((await root.unwrap(first, context)).equals(key));
  });

  it('is bound to its tenant under a derived key as well', async (t) => {
    await bao.call('transit/keys/derived', { derived: true });
    const root = await opened(t, { VAULT_KEY: 'derived' });
    const wrapped = await root.wrap(key, context);
    assert.ok((await root.unwrap(wrapped, context)).equals(key));
    await assert.rejects(root.unwrap(wrapped, { ...context, tenant: 'another' }), isIntegrityError);
  });

  it('logs in with AppRole, with a policy that only encrypts and decrypts', async (t) => {
    const directory = temporaryDirectory(t);
    const root = await opened(t, await appRole(bao, directory));
    const wrapped = await root.wrap(key, context);
    assert.ok((await root.unwrap(wrapped, context)).equals(key));
    assert.equal((await root.current()).keyId, 'transit/keys/strongroom');
  });

  it('logs in again after its token was revoked', async (t) => {
    const directory = temporaryDirectory(t);
    const root = await opened(t, await appRole(bao, directory));
    const wrapped = await root.wrap(key, context);
    await bao.call('sys/leases/revoke-prefix/auth/approle', {});
    assert.ok((await root.unwrap(wrapped, context)).equals(key));
  });

  it('logs in with the token of a Kubernetes service account, which Kubernetes reviews', async (t) => {
    const directory = temporaryDirectory(t);
    const accounts = await reviewTokens(t, directory);
    await kubernetesLogin(bao, accounts.address, accounts.certificate);
    const file = join(directory, 'service-account-token');
    writeFileSync(file, `${serviceAccountToken('strongroom')}\n`);
    const root = await opened(t, {
      VAULT_TOKEN: '',
      VAULT_KUBERNETES_ROLE: 'strongroom',
      VAULT_KUBERNETES_TOKEN_FILE: file,
    });
    const wrapped = await root.wrap(key, context);
    assert.ok((await root.unwrap(wrapped, context)).equals(key));
    assert.equal(accounts.reviewed.length, 1, 'later requests use the token of the first login');
    // Kubernetes replaces the token in the file, and the next login takes the new one.
    const renewed = serviceAccountToken('strongroom', { jti: 'renewed' });
    writeFileSync(file, renewed);
    await bao.call('sys/leases/revoke-prefix/auth/kubernetes', {});
    assert.ok((await root.unwrap(wrapped, context)).equals(key));
    assert.equal(accounts.reviewed.at(-1), renewed);
    writeFileSync(file, serviceAccountToken('another'));
    await bao.call('sys/leases/revoke-prefix/auth/kubernetes', {});
    await assert.rejects(root.unwrap(wrapped, context), unavailable(/rejects the login/));
  });

  it('renews its token before the token expires', async (t) => {
    const token = await tokenOf(bao, '2s');
    const root = await opened(t, { VAULT_TOKEN: token });
    await root.wrap(key, context);
    for (;;) {
      const { last_renewal } = dataOf(await bao.call('auth/token/lookup', { token }));
      if (last_renewal !== undefined) break;
      await nextLook();
    }
    await root.wrap(key, context);
  });

  it('reads a token file again when the token in it was replaced', async (t) => {
    const file = join(temporaryDirectory(t), 'token');
    const first = await tokenOf(bao);
    writeFileSync(file, `${first}\n`);
    const root = await open(t, { VAULT_ADDRESS: bao.address, VAULT_TOKEN_FILE: file });
    const wrapped = await root.wrap(key, context);
    writeFileSync(file, await tokenOf(bao));
    await bao.call('auth/token/revoke', { token: first });
    assert.ok((await root.unwrap(wrapped, context)).equals(key));
  });

  it('says that access is denied, and never the token', async (t) => {
    const token = 'sr-not-a-token';
    const root = await opened(t, { VAULT_TOKEN: token });
    await assert.rejects(root.wrap(key, context), (error) => {
      assert.ok(error instanceof VaultError);
      assert.equal(error.code, 'unavailable');
      assert.match(error.message, /denies access \(status 403\)/);
      assert.doesNotMatch(`${error.message}${error.stack}${error.public}`, new RegExp(token));
      return true;
    });
  });

  it('says that a key is missing or has no associated data', async (t) => {
    await bao.call('transit/keys/signing', { type: 'ed25519' });
    const root = await opened(t, { VAULT_KEY: 'signing' });
    await assert.rejects(root.wrap(key, context), unavailable(/status 400/));
    const elsewhere = await opened(t, { VAULT_MOUNT: 'nowhere' });
    await assert.rejects(elsewhere.wrap(key, context), unavailable(/status 404/));
  });

  it('refuses a key of another root key without asking for it', async (t) => {
    const root = await opened(t);
    const wrapped = { ...(await root.wrap(key, context)), keyId: 'transit/keys/other' };
    await assert.rejects(root.unwrap(wrapped, context), isIntegrityError);
  });

  it('says that a service cannot be reached, or does not respond in time', async (t) => {
    const port = await freePort();
    const nobody = await opened(t, { VAULT_ADDRESS: `http://127.0.0.1:${port}` });
    await assert.rejects(nobody.wrap(key, context), unavailable(/ECONNREFUSED/));
    const root = await opened(t);
    const wrapped = await root.wrap(key, context);
    await bao.suspend();
    t.after(() => bao.resume());
    await assert.rejects(root.unwrap(wrapped, context), unavailable(/timeout/));
    bao.resume();
    assert.ok((await root.unwrap(wrapped, context)).equals(key));
  });
});

describe('a service that lies', () => {
  it('is not asked without a pause for another lease, however short it says that one is', async (t) => {
    const directory = temporaryDirectory(t);
    const file = join(directory, 'secret-id');
    writeFileSync(file, 'secret');
    for (const lease_duration of [0.0001, -5]) {
      const renewed = Promise.withResolvers<void>();
      let renewals = 0;
      const auth = { client_token: 'token', lease_duration, renewable: true };
      const server = createPlainServer(async ({ url = '' }, response) => {
        if (url.endsWith('/renew-self')) {
          renewals += 1;
          renewed.resolve();
        }
        response.end(JSON.stringify({ auth, data: { ciphertext: 'vault:v1:AAAA' } }));
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      t.after(() => {
        server.closeAllConnections();
        server.close();
      });
      const { port } = server.address() as AddressInfo;
      t.mock.timers.enable({ apis: ['setTimeout'] });
      const root = await open(t, {
        VAULT_ADDRESS: `http://127.0.0.1:${port}`,
        VAULT_ROLE_ID: 'role',
        VAULT_SECRET_ID_FILE: file,
      });
      await root.current();
      t.mock.timers.tick(499);
      await root.current();
      assert.equal(renewals, 0, `${lease_duration}`);
      t.mock.timers.tick(1);
      await renewed.promise;
      root.close();
      t.mock.timers.reset();
    }
  });
});

describe('the configuration of vault-transit', () => {
  for (const [address, what] of [
    ['http://vault.example.com:8200', 'plain HTTP to another machine'],
    ['https://user:secret@vault.example.com', 'credentials in the address'],
    ['vault.example.com', 'no address'],
    ['ftp://127.0.0.1', 'another scheme'],
  ] as const) {
    it(`is refused for ${what}`, async (t) => {
      await assert.rejects(open(t, { VAULT_ADDRESS: address, VAULT_TOKEN: 'x' }), (error) => {
        assert.ok(error instanceof RootKeyError);
        assert.doesNotMatch(error.message, /secret@/);
        return true;
      });
    });
  }

  it('is refused for names that climb out of their path', async (t) => {
    for (const name of ['../sys', 'a/../../b', 'a b']) {
      const variables = { VAULT_ADDRESS: 'https://vault.example.com', VAULT_TOKEN: 'x' };
      await assert.rejects(open(t, { ...variables, VAULT_MOUNT: name }), RootKeyError);
      await assert.rejects(open(t, { ...variables, VAULT_KEY: name }), RootKeyError);
    }
  });

  it('is refused without a way to log in', async (t) => {
    await assert.rejects(open(t, { VAULT_ADDRESS: 'https://vault.example.com' }), RootKeyError);
    await assert.rejects(
      open(t, { VAULT_ADDRESS: 'https://vault.example.com', VAULT_ROLE_ID: 'x' }),
      RootKeyError,
    );
  });
});

async function open(t: TestContext, variables: Record<string, string>): Promise<RootKey> {
  const root = await vaultTransit.open({
    read: (name) => variables[name] || undefined,
    file: '',
    environment: {},
    createIfMissing: false,
    clock: systemClock,
    random: pooledRandom(),
  });
  t.after(() => root.close());
  return root;
}

const policy = {
  policy: `path "transit/encrypt/strongroom" { capabilities = ["update"] }
           path "transit/decrypt/strongroom" { capabilities = ["update"] }`,
};

async function appRole(bao: OpenBao, directory: string): Promise<Record<string, string>> {
  const role = `role-${randomBytes(4).toString('hex')}`;
  await bao.call('sys/auth/approle', { type: 'approle' }).catch(() => undefined);
  await bao.call('sys/policies/acl/strongroom', policy);
  await bao.call(`auth/approle/role/${role}`, { token_policies: 'strongroom', token_ttl: '1h' });
  const { role_id } = dataOf(await bao.call(`auth/approle/role/${role}/role-id`));
  const { secret_id } = dataOf(await bao.call(`auth/approle/role/${role}/secret-id`, {}));
  const file = join(directory, 'secret-id');
  writeFileSync(file, `${secret_id}\n`, { mode: 0o600 });
  return { VAULT_TOKEN: '', VAULT_ROLE_ID: String(role_id), VAULT_SECRET_ID_FILE: file };
}

/** The API of Kubernetes as far as the login needs it: it reviews the tokens of service accounts. */
async function reviewTokens(t: TestContext, directory: string) {
  const { cert, keyFile } = writeCertificate(directory);
  const reviewed: string[] = [];
  const options = { cert, key: readFileSync(keyFile) };
  const server = createServer(options, async (request, response) => {
    const { spec } = (await json(request)) as { spec: { token: string } };
    reviewed.push(spec.token);
    const [, claims = ''] = spec.token.split('.');
    const { sub: username } = JSON.parse(Buffer.from(claims, 'base64url').toString());
    const status = { authenticated: true, user: { username, uid: accountUid } };
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec, status };
    response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify(review));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    address: `https://127.0.0.1:${port}`,
    certificate: cert,
    reviewed,
  };
}

const accountUid = 'b1b7f4c2-6f0e-4f5e-9a55-4b4b2f1d0001';

/** Only the API of Kubernetes verifies its signature. */
function serviceAccountToken(name: string, more: object = {}): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const prefix = 'kubernetes.io/serviceaccount';
  const claims = {
    iss: prefix,
    sub: `system:serviceaccount:default:${name}`,
    [`${prefix}/namespace`]: 'default',
    [`${prefix}/service-account.name`]: name,
    [`${prefix}/service-account.uid`]: accountUid,
    ...more,
  };
  return [part({ alg: 'RS256', kid: 'test' }), part(claims), part({})].join('.');
}

async function kubernetesLogin(bao: OpenBao, host: string, certificate: string): Promise<void> {
  await bao.call('sys/auth/kubernetes', { type: 'kubernetes' });
  await bao.call('sys/policies/acl/strongroom', policy);
  await bao.call('auth/kubernetes/config', {
    kubernetes_host: host,
    kubernetes_ca_cert: certificate,
    disable_local_ca_jwt: true,
    token_reviewer_jwt: serviceAccountToken('reviewer'),
  });
  await bao.call('auth/kubernetes/role/strongroom', {
    bound_service_account_names: 'strongroom',
    bound_service_account_namespaces: 'default',
    token_policies: 'strongroom',
  });
}

function dataOf({ data }: Record<string, unknown>): Record<string, unknown> {
  assert.ok(isObject(data));
  return { ...data };
}

async function tokenOf(bao: OpenBao, ttl = '1h'): Promise<string> {
  await bao.call('sys/policies/acl/strongroom', policy);
  const { auth } = await bao.call('auth/token/create', { policies: ['strongroom'], ttl });
  return String((auth as Record<string, unknown>)['client_token']);
}

function unavailable(message: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof VaultError);
    assert.equal(error.code, 'unavailable');
    assert.match(error.message, message);
    return true;
  };
}
