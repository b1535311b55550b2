/**
 * The source `vault-transit`: a key in the Transit engine of HashiCorp Vault or OpenBao, which never leaves it. A
 * policy needs `update` on `<mount>/encrypt/<key>` and `<mount>/decrypt/<key>`, and nothing else.
 */
import { createSecretKey, type KeyObject } from 'node:crypto';
import { integrityError } from '../../base/errors.ts';
import { isObject, type JsonObject } from '../../base/json.ts';
import { encodeParts } from '../parts.ts';
import { addressIn, jsonOf, type RemoteResponse, remoteUnavailable } from './remote.ts';
import {
  type ReadRootKeyVariable,
  type RootKey,
  RootKeyError,
  type RootKeySource,
  type WrapContext,
  type WrappedKey,
} from './root-key.ts';
import { canLogIn, createVaultSession, loginVariables, type VaultServer } from './vault-login.ts';

const source = 'vault-transit';
const keyBytes = 32;

/** `vault:v<version>:<base64>`, which is what the service calls a ciphertext. */
const ciphertextForm = /^vault:v([1-9][0-9]{0,8}):([A-Za-z0-9+/=]{1,2048})$/;

/** Names of keys and mounts are parts of a path. */
const nameForm = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}(\/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}){0,4}$/;

export const vaultTransit: RootKeySource = {
  name: source,
  variables: ['VAULT_ADDRESS', 'VAULT_KEY', 'VAULT_MOUNT', 'VAULT_NAMESPACE', ...loginVariables],
  isConfigured: (read) => read('VAULT_ADDRESS') !== undefined && canLogIn(read),
  open: async ({ read, random }) => {
    const key = nameIn(read, 'VAULT_KEY', 'strongroom');
    const mount = nameIn(read, 'VAULT_MOUNT', 'transit');
    const server = serverOf(read, `${mount}/${key}`);
    const session = createVaultSession(server, read);
    const keyId = `${mount}/keys/${key}`;
    const { origin } = server;

    async function wrap(plaintext: KeyObject, context: WrapContext): Promise<WrappedKey> {
      const body = { plaintext: plaintext.export().toString('base64'), ...boundTo(context) };
      const response = await session.post(`${mount}/encrypt/${key}`, body);
      const [, version, blob] = ciphertextForm.exec(textIn(response, 'ciphertext')) ?? [];
      if (version === undefined || blob === undefined) throw refused(origin, response);
      return { source, keyId, version: Number(version), blob: Buffer.from(blob, 'base64') };
    }

    const rootKey: RootKey = {
      source,
      origin,
      // A policy that allows nothing but encryption and decryption does not let the vault read the key's versions.
      current: async () => {
        const { version } = await wrap(createSecretKey(random(keyBytes)), {
          vault: '',
          tenant: '',
        });
        return { keyId, version };
      },
      wrap,
      unwrap: async ({ blob, version, keyId: wrappedBy }, context) => {
        if (wrappedBy !== keyId) throw foreign(origin, wrappedBy);
        const ciphertext = `vault:v${version}:${Buffer.from(blob).toString('base64')}`;
        const body = { ciphertext, ...boundTo(context) };
        const response = await session.post(`${mount}/decrypt/${key}`, body);
        // What it cannot authenticate, and versions that it has trimmed, are both a 400 of the service.
        if (response.status === 400) throw altered(origin);
        const bytes = Buffer.from(textIn(response, 'plaintext'), 'base64');
        if (bytes.length !== keyBytes) throw refused(origin, response);
        return createSecretKey(bytes);
      },
      close: () => session.close(),
    };
    return rootKey;
  },
};

/** `associated_data` binds under every key; a key of type `derived` needs a context besides. */
function boundTo({ vault, tenant }: WrapContext): JsonObject {
  const binding = Buffer.from(encodeParts(['root key', vault, tenant])).toString('base64');
  return { context: binding, associated_data: binding };
}

function textIn(response: RemoteResponse, name: string): string {
  const body = jsonOf(response);
  const data = isObject(body['data']) ? body['data'] : {};
  return typeof data[name] === 'string' ? data[name] : '';
}

/** What the statuses of the service mean for the operator; its messages are not quoted. */
const problems: Readonly<Record<number, string>> = {
  400: 'rejects the request (status 400): the key may be missing, or of a type without associated data',
  403: 'denies access (status 403)',
  404: 'has no such mount or key (status 404)',
  429: 'throttles (status 429)',
  503: 'is sealed or in maintenance (status 503)',
};

function refused(origin: string, { status }: RemoteResponse): Error {
  return remoteUnavailable(origin, problems[status] ?? `responds with status ${status}`);
}

function altered(origin: string): Error {
  return integrityError(
    `the root key (${origin}) does not open a stored key: it was altered, or is under another key or version`,
  );
}

function foreign(origin: string, keyId: string): Error {
  return integrityError(`a stored key is wrapped by ${keyId}, and the root key is ${origin}`);
}

function nameIn(read: ReadRootKeyVariable, variable: string, fallback: string): string {
  const name = read(variable) ?? fallback;
  if (nameForm.test(name)) return name;
  throw new RootKeyError(
    `STRONGROOM_${variable} must be a name of letters, digits, "_", "." and "-"`,
  );
}

function serverOf(read: ReadRootKeyVariable, key: string): VaultServer {
  const address = addressIn('VAULT_ADDRESS', read('VAULT_ADDRESS') ?? '');
  const origin = `${source} ${address.origin}, ${key}`;
  return { origin, address, namespace: read('VAULT_NAMESPACE') };
}
