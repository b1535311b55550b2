/** The keys with which clients encrypt. */
import Type from 'typebox';
import {
  type ClientKeyListing,
  type ClientKeyWriting,
  clientKeyResource,
  listClientKeys,
} from '../access/client-keys/resource.ts';
import { clientKeyAlgorithms } from '../keys/client-key.ts';
import { create, read, remove } from '../rules/stored-resource.ts';
import { idOf, operation, type Resource } from './declaration/operation.ts';
import { attribute, object } from './declaration/shape.ts';
import { byId, nullable, shared, strict, text, uuid } from './shapes.ts';

const { id, expires_at, created_by, created_at } = shared;

const clientKeyRequest = object(
  {
    expires_at: attribute(nullable(text), 'When the key ends.'),
    algorithm: attribute(
      nullable(Type.Enum([...clientKeyAlgorithms])),
      'How clients encrypt: `ECDH-ES` with X25519, which is the default, or `RSA-OAEP-256`; content with `A256GCM`.',
    ),
  },
  { ...strict, title: 'EncryptionKeyRequest' },
);

const clientKey = object(
  {
    id,
    key_id: attribute(uuid, 'The same as `id`; encrypted data names it as `kid`.'),
    public_key_pem: attribute(
      Type.Optional(text),
      'The public key in PEM: of an X25519 key its bare 32 bytes, of an RSA key its SubjectPublicKeyInfo.',
    ),
    expires_at,
    created_by,
    created_at,
  },
  {
    title: 'EncryptionKey',
    description:
      'A key by which clients encrypt for the vault. Only the response to its creation has the public key.',
  },
);

const exampleId = idOf(5);

export const clientKeys: Resource<ClientKeyWriting & ClientKeyListing> = {
  tag: 'Encryption keys',
  description: 'Keys by which clients encrypt what only the vault can decrypt.',
  operations: (tools) => {
    const stored = clientKeyResource(tools);
    return [
      operation({
        id: 'createEncryptionKey',
        method: 'POST',
        path: '/keys',
        summary: 'Create a key for encryption by clients; its public half is shown only once',
        permission: 'keys:create',
        tagged: true,
        body: clientKeyRequest,
        bodyMayBeEmpty: true,
        // As the clients of the interface send it.
        otherMediaType: 'application/json-patch+json',
        reply: { status: 201, body: clientKey },
        problems: ['unprocessable'],
        example: {
          body: {},
          reply: { id: exampleId, public_key_pem: '-----BEGIN PUBLIC KEY-----…' },
        },
        // They are counted, and made one at a time.
        serialKey: ({ caller }) => `${caller.tenant.id} keys`,
        handle: ({ caller, body }) => create(stored, caller, body),
      }),
      operation({
        id: 'listEncryptionKeys',
        method: 'GET',
        path: '/keys',
        summary: 'List encryption keys, newest first',
        permission: 'keys:read',
        reply: { status: 200, body: Type.Array(clientKey) },
        example: { reply: [{ id: exampleId }] },
        handle: ({ caller }) => listClientKeys(tools, caller),
      }),
      operation({
        id: 'getEncryptionKey',
        method: 'GET',
        path: '/keys/:id',
        summary: 'Read an encryption key, without its public half',
        permission: 'keys:read',
        tagged: true,
        params: byId,
        reply: { status: 200, body: clientKey },
        example: { params: { id: exampleId }, reply: { id: exampleId } },
        handle: ({ caller, params }) => read(stored, caller, params.id),
      }),
      operation({
        id: 'deleteEncryptionKey',
        method: 'DELETE',
        path: '/keys/:id',
        summary: 'Delete an encryption key, so that data encrypted for it can no longer be read',
        permission: 'keys:delete',
        tagged: true,
        params: byId,
        reply: { status: 204 },
        example: { params: { id: exampleId } },
        handle: ({ caller, params }) => remove(stored, caller, params.id),
      }),
    ];
  },
};
