/**
 * The source `aws-kms`: a symmetric key of the AWS Key Management Service, which never leaves it. A policy needs
 * `kms:Encrypt` and `kms:Decrypt`, and nothing else.
 */
import { createSecretKey, type KeyObject } from 'node:crypto';
import { AwsV4Signer } from 'aws4fetch';
import { integrityError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { createAwsCredentials } from './aws-credentials.ts';
import { addressIn, jsonOf, remoteUnavailable, requestRemote } from './remote.ts';
import {
  type ReadRootKeyVariable,
  type RootKey,
  RootKeyError,
  type RootKeySource,
  type WrapContext,
  type WrappedKey,
} from './root-key.ts';

const source = 'aws-kms';
const keyBytes = 32;

/** The service does not count the versions of a key for its clients: it finds them by itself. */
const version = 1;

export const awsKms: RootKeySource = {
  name: source,
  variables: ['AWS_KMS_KEY', 'AWS_KMS_REGION', 'AWS_KMS_ENDPOINT'],
  isConfigured: (read) => read('AWS_KMS_KEY') !== undefined,
  open: async ({ read, environment, clock, random }) => {
    const readShared: ReadRootKeyVariable = (name) => environment[name] || undefined;
    const key = keyIn(read);
    const region = regionOf({ read, readShared, key });
    const endpoint = read('AWS_KMS_ENDPOINT');
    const address =
      endpoint === undefined
        ? `https://kms.${region}.amazonaws.com`
        : addressIn('AWS_KMS_ENDPOINT', endpoint).href;
    const origin = `${source} ${region}, ${key}`;
    const credentials = createAwsCredentials({ origin, region, read: readShared, clock });

    /** One call of the service's JSON protocol. */
    async function call(action: 'Encrypt' | 'Decrypt', input: JsonObject): Promise<JsonObject> {
      const signer = new AwsV4Signer({
        ...(await credentials()),
        url: address,
        method: 'POST',
        headers: {
          'content-type': 'application/x-amz-json-1.1',
          'x-amz-target': `TrentService.${action}`,
        },
        body: JSON.stringify(input),
        service: 'kms',
        region,
        datetime: amzDateOf(clock.now()),
      });
      const { url, ...request } = await signer.sign();
      const response = await requestRemote(origin, url, { ...request, body: request.body ?? null });
      const output = jsonOf(response);
      if (response.status === 200) return output;
      const name = /[A-Za-z]+$/.exec(String(output['__type']))?.[0] ?? '';
      if (unreadable.has(name)) throw altered(origin, name);
      throw remoteUnavailable(origin, problems[name] ?? `responds with status ${response.status}`);
    }

    async function wrap(plaintext: KeyObject, context: WrapContext): Promise<WrappedKey> {
      const { KeyId, CiphertextBlob } = await call('Encrypt', {
        KeyId: key,
        Plaintext: plaintext.export().toString('base64'),
        EncryptionContext: boundTo(context),
      });
      if (typeof KeyId !== 'string' || typeof CiphertextBlob !== 'string') {
        throw remoteUnavailable(origin, 'responds without a ciphertext');
      }
      // The key's ARN, also where an alias was configured, which may be moved to another key.
      return { source, keyId: KeyId, version, blob: Buffer.from(CiphertextBlob, 'base64') };
    }

    let arn: string | undefined;

    /** The ARN of the configured key. */
    async function keyIdOf(): Promise<string> {
      arn ??= (await wrap(createSecretKey(random(keyBytes)), { vault: '', tenant: '' })).keyId;
      return arn;
    }

    const rootKey: RootKey = {
      source,
      origin,
      current: async () => {
        arn = undefined;
        return { keyId: await keyIdOf(), version };
      },
      wrap,
      unwrap: async ({ keyId, blob }, context) => {
        // An attacker with write access to the database could name a key of an account of their own.
        if (keyId !== (await keyIdOf())) throw altered(origin, 'it is under another key');
        const { Plaintext } = await call('Decrypt', {
          KeyId: keyId,
          CiphertextBlob: Buffer.from(blob).toString('base64'),
          EncryptionContext: boundTo(context),
        });
        const bytes = Buffer.from(String(Plaintext), 'base64');
        if (bytes.length === keyBytes) return createSecretKey(bytes);
        throw remoteUnavailable(origin, 'responds without a key');
      },
      close: () => undefined,
    };
    return rootKey;
  },
};

/** Authenticated with the ciphertext, and shown in the log of AWS CloudTrail. */
function boundTo({ vault, tenant }: WrapContext): JsonObject {
  return { 'strongroom:vault': vault || '-', 'strongroom:tenant': tenant || '-' };
}

/** Errors of a ciphertext that was altered, or is of another key or context. */
const unreadable: ReadonlySet<string> = new Set([
  'InvalidCiphertextException',
  'IncorrectKeyException',
]);

/** What errors of the service mean for the operator; its messages are not quoted. */
const problems: Readonly<Record<string, string>> = {
  AccessDeniedException: 'denies access',
  UnrecognizedClientException: 'does not know the credentials',
  InvalidSignatureException: 'rejects the signature of the credentials',
  ExpiredTokenException: 'rejects credentials that have expired',
  ThrottlingException: 'throttles',
  LimitExceededException: 'throttles',
  NotFoundException: 'has no such key',
  DisabledException: 'has disabled the key',
  KMSInvalidStateException: 'has a key that is disabled or pending deletion',
  InvalidKeyUsageException: 'has a key that does not encrypt',
  KeyUnavailableException: 'cannot use the key at the moment',
  DependencyTimeoutException: 'cannot use the key at the moment',
  KMSInternalException: 'has an internal error',
};

function altered(origin: string, reason: string): Error {
  return integrityError(`the root key (${origin}) does not open a stored key: ${reason}`);
}

/** An id, an ARN or an alias. */
const keyForm = /^[A-Za-z0-9:/_-]{1,512}$/;
const regionForm = /^[a-z0-9-]{1,32}$/;

function keyIn(read: ReadRootKeyVariable): string {
  const key = read('AWS_KMS_KEY') ?? '';
  if (keyForm.test(key)) return key;
  throw new RootKeyError('STRONGROOM_AWS_KMS_KEY must be the id, the ARN, or the alias of a key');
}

interface RegionSettings {
  readonly read: ReadRootKeyVariable;
  readonly readShared: ReadRootKeyVariable;
  readonly key: string;
}

/** An ARN names its region itself. */
function regionOf({ read, readShared, key }: RegionSettings): string {
  const named = read('AWS_KMS_REGION') ?? (key.startsWith('arn:') ? key.split(':')[3] : undefined);
  const region = named ?? readShared('AWS_REGION') ?? readShared('AWS_DEFAULT_REGION') ?? '';
  if (regionForm.test(region)) return region;
  throw new RootKeyError('set STRONGROOM_AWS_KMS_REGION to the region of the key');
}

/** `20261124T003000Z`. */
function amzDateOf(now: number): string {
  return `${new Date(now).toISOString().replace(/[-:]|\.[0-9]{3}/g, '')}`;
}
