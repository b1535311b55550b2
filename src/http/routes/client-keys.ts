/** Routes of the keys by which clients encrypt. */
import Type from 'typebox';
import { create, read, remove } from '../../rules/stored-resource.ts';
import {
  type ClientKeyWriting,
  clientKeyResource,
  listClientKeys,
} from '../../vault/client-keys/resource.ts';
import { type Route, route } from '../protocol/route.ts';
import { clientKey, clientKeyRequest } from '../schemas/client-key.ts';
import { byId } from '../schemas/shared.ts';

export function clientKeyRoutes(tools: ClientKeyWriting): Route[] {
  const keys = clientKeyResource(tools);
  return [
    route({
      method: 'POST',
      path: '/keys',
      summary: 'Create a key by which clients encrypt; its public half is shown this once',
      permission: 'keys:create',
      body: clientKeyRequest,
      bodyMayBeEmpty: true,
      // As the clients of the interface send it.
      otherMediaType: 'application/json-patch+json',
      reply: { status: 201, body: clientKey },
      // They are counted, and made one at a time.
      serialKey: ({ caller }) => `${caller.tenant.id} keys`,
      handle: ({ caller, body }) => create(keys, caller, body),
    }),
    route({
      method: 'GET',
      path: '/keys',
      summary: 'List encryption keys, newest first',
      permission: 'keys:read',
      reply: { status: 200, body: Type.Array(clientKey) },
      handle: ({ caller }) => listClientKeys(tools, caller),
    }),
    route({
      method: 'GET',
      path: '/keys/:id',
      summary: 'Read an encryption key, without its public half',
      permission: 'keys:read',
      params: byId,
      reply: { status: 200, body: clientKey },
      handle: ({ caller, params }) => read(keys, caller, params.id),
    }),
    route({
      method: 'DELETE',
      path: '/keys/:id',
      summary: 'Delete an encryption key; what was encrypted for it cannot be read any more',
      permission: 'keys:delete',
      params: byId,
      reply: { status: 204 },
      handle: ({ caller, params }) => remove(keys, caller, params.id),
    }),
  ];
}
