/** A root key in AWS KMS never leaves it, and credentials are found where all clients of AWS find them. */
import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { isIntegrityError, VaultError } from '../../../src/base/errors.ts';
import { pooledRandom } from '../../../src/base/random.ts';
import { awsKms } from '../../../src/keys/root/aws-kms.ts';
import { type RootKey, RootKeyError } from '../../../src/keys/root/root-key.ts';
import { kmsRegion, newKmsKey, startMoto, withoutMoto } from '../../support/moto.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const key = createSecretKey(Buffer.alloc(32, 7));
const context = { vault: 'b6a4f1f2-2b8e-4a26-8d0f-6d2b4ce1a001', tenant: 'a tenant' };
const region = kmsRegion;
/** Moto accepts all of them. */
const credentials = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' };
/** No instance of a cloud runs the tests. */
const nowhere = { AWS_EC2_METADATA_DISABLED: 'true', AWS_SHARED_CREDENTIALS_FILE: '/nonexistent' };

describe('a root key in AWS KMS', { skip: withoutMoto }, () => {
  let address = '';
  let keyId = '';
  const ends: (() => void | Promise<void>)[] = [];
  before(async () => {
    address = await startMoto({ after: (end) => ends.push(end) });
    keyId = (await newKmsKey(address)).keyId;
  });
  after(async () => {
    for (const end of ends) await end();
  });

  const opened = (t: TestContext, shared: Record<string, string> = credentials) =>
    open(t, { AWS_KMS_KEY: keyId, AWS_KMS_ENDPOINT: address }, shared);

  it('unwraps what it wrapped, for the same vault and tenant alone', async (t) => {
    const root = await opened(t);
    const wrapped = await root.wrap(key, context);
    assert.match(wrapped.keyId, new RegExp(`^arn:aws:kms:${region}:[0-9]+:key/${keyId}$`));
    assert.ok((await root.unwrap(wrapped, context)).equals(key));
    const vault = { vault: context.vault, tenant: '' };
    const own = await root.wrap(key, vault);
    assert.ok((await root.unwrap(own, vault)).equals(key));
    for (const other of [{ ...context, tenant: 'another' }, { ...context, vault: 'x' }, vault]) {
      await assert.rejects(root.unwrap(wrapped, other), isIntegrityError);
    }
  });

  it('refuses a blob that was cut or altered', async (t) => {
    const root = await opened(t);
    const wrapped = await root.wrap(key, context);
    const blob = Uint8Array.from(wrapped.blob);
    blob[blob.length - 1] = (blob.at(-1) ?? 0) ^ 1;
    await assert.rejects(root.unwrap({ ...wrapped, blob }, context), VaultError);
  });

  it('never asks for a key that a stored row names instead of its own', async (t) => {
    const { arn } = await newKmsKey(address);
    const attacker = await open(t, { AWS_KMS_KEY: arn, AWS_KMS_ENDPOINT: address }, credentials);
    const wrapped = await attacker.wrap(key, context);
    assert.equal(wrapped.keyId, arn);
    await assert.rejects((await opened(t)).unwrap(wrapped, context), isIntegrityError);
  });

  it('says that there is no such key', async (t) => {
    const missing = await open(
      t,
      { AWS_KMS_KEY: 'alias/none', AWS_KMS_ENDPOINT: address },
      credentials,
    );
    await assert.rejects(missing.current(), unavailable(/has no such key/));
  });

  it('finds credentials in the shared file, by their profile', async (t) => {
    const file = join(temporaryDirectory(t), 'credentials');
    writeFileSync(
      file,
      '[default]\naws_access_key_id = no\n\n[vault]\naws_access_key_id=test\naws_secret_access_key = test\n',
    );
    const root = await opened(t, { AWS_SHARED_CREDENTIALS_FILE: file, AWS_PROFILE: 'vault' });
    await root.wrap(key, context);
    const other = await opened(t, { ...nowhere, AWS_SHARED_CREDENTIALS_FILE: file });
    await assert.rejects(other.wrap(key, context), unavailable(/finds no credentials/));
  });

  it('assumes a role by web identity', async (t) => {
    const file = join(temporaryDirectory(t), 'token');
    writeFileSync(file, 'an identity token\n');
    const root = await opened(t, {
      AWS_WEB_IDENTITY_TOKEN_FILE: file,
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/vault',
      AWS_ENDPOINT_URL_STS: address,
    });
    const wrapped = await root.wrap(key, context);
    assert.ok((await root.unwrap(wrapped, context)).equals(key));
  });

  it('gets the credentials of its instance, with a token of the metadata service', async (t) => {
    let tokens = 0;
    const metadata = await serving(t, ({ method, url, headers }, response) => {
      const path = `${method} ${url}`;
      if (path === 'PUT /latest/api/token') {
        tokens += 1;
        response.end('a-token');
      } else if (headers['x-aws-ec2-metadata-token'] !== 'a-token') {
        response.writeHead(401).end();
      } else if (path === 'GET /latest/meta-data/iam/security-credentials/') {
        response.end('vault');
      } else {
        const Expiration = new Date(Date.now() + 3_600_000).toISOString();
        const AccessKeyId = 'test';
        response.end(
          JSON.stringify({ AccessKeyId, SecretAccessKey: 'x', Token: 'session', Expiration }),
        );
      }
    });
    const shared = { ...nowhere, AWS_EC2_METADATA_DISABLED: 'false' };
    const root = await opened(t, { ...shared, AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata });
    await root.wrap(key, context);
    await root.wrap(key, context);
    assert.equal(tokens, 1);
  });
});

describe('what the service refuses', () => {
  for (const [name, message] of [
    ['AccessDeniedException', /denies access/],
    ['ThrottlingException', /throttles/],
    ['DisabledException', /disabled the key/],
    ['com.amazonaws#ExpiredTokenException', /expired/],
    ['NewException', /status 400/],
  ] as const) {
    it(`is said without its message: ${name}`, async (t) => {
      const address = await serving(t, (_request, response) => {
        response.writeHead(400).end(JSON.stringify({ __type: name, message: 'a secret' }));
      });
      const root = await open(t, { AWS_KMS_KEY: 'x', AWS_KMS_ENDPOINT: address }, credentials);
      await assert.rejects(root.wrap(key, context), (error) => {
        assert.doesNotMatch(`${error}`, /a secret/);
        return unavailable(message)(error);
      });
    });
  }

  it('is said of a response without an end', async (t) => {
    const address = await serving(t, (_request, response) => {
      const more = (): unknown => response.write(Buffer.alloc(65_536)) && setImmediate(more);
      response.on('drain', more).on('error', () => undefined);
      more();
    });
    const root = await open(t, { AWS_KMS_KEY: 'x', AWS_KMS_ENDPOINT: address }, credentials);
    await assert.rejects(root.wrap(key, context), unavailable(/cannot be reached/));
  });

  it('is no redirect to another host', async (t) => {
    const address = await serving(t, (_request, response) => {
      response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end();
    });
    const root = await open(t, { AWS_KMS_KEY: 'x', AWS_KMS_ENDPOINT: address }, credentials);
    await assert.rejects(root.wrap(key, context), unavailable(/cannot be reached/));
  });
});

describe('the configuration of aws-kms', () => {
  it('is refused without a region, with another key, or for plain HTTP', async (t) => {
    const variables = { AWS_KMS_KEY: 'alias/vault' };
    await assert.rejects(open(t, variables, { AWS_REGION: '' }), RootKeyError);
    await assert.rejects(open(t, { AWS_KMS_KEY: 'a key' }), RootKeyError);
    const endpoint = 'http://kms.example.com';
    await assert.rejects(open(t, { ...variables, AWS_KMS_ENDPOINT: endpoint }), RootKeyError);
  });

  it('takes the region of an ARN', async (t) => {
    const root = await open(
      t,
      { AWS_KMS_KEY: 'arn:aws:kms:us-west-2:123456789012:key/x' },
      { AWS_REGION: '' },
    );
    assert.match(root.origin, /us-west-2/);
  });
});

async function open(
  t: TestContext,
  variables: Record<string, string>,
  shared: Record<string, string> = {},
): Promise<RootKey> {
  const all: Record<string, string> = { AWS_REGION: region, ...nowhere, ...shared };
  const root = await awsKms.open({
    read: (name) => variables[name] || undefined,
    file: '',
    environment: all,
    createIfMissing: false,
    clock: systemClock,
    random: pooledRandom(),
  });
  t.after(() => root.close());
  return root;
}

async function serving(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function unavailable(message: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof VaultError);
    assert.equal(error.code, 'unavailable');
    assert.match(error.message, message);
    return true;
  };
}
