/** Routes of the keys of applications. */
import Type from 'typebox';
import {
  createKey,
  deleteKey,
  type KeyWriting,
  listKeys,
  readKey,
  regenerateKey,
} from '../../vault/applications/keys.ts';
import { type Route, route } from '../protocol/route.ts';
import { applicationKey, byKeyId, keyQuery } from '../schemas/application.ts';
import { byId } from '../schemas/shared.ts';

export function applicationKeyRoutes(tools: KeyWriting): Route[] {
  return [
    route({
      method: 'POST',
      path: '/applications/:id/keys',
      summary: 'Create another key; existing keys are not changed',
      permission: 'application:create',
      params: byId,
      reply: { status: 201, body: applicationKey },
      serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
      handle: ({ caller, params }) => createKey(tools, caller, params.id),
    }),
    route({
      method: 'GET',
      path: '/applications/:id/keys',
      summary: 'List the keys of an application',
      permission: 'application:read',
      params: byId,
      query: keyQuery,
      reply: { status: 200, body: Type.Array(applicationKey) },
      handle: ({ caller, params, query }) =>
        listKeys(tools, caller, { application: params.id, query }),
    }),
    route({
      method: 'GET',
      path: '/applications/:id/keys/:keyId',
      summary: 'Read a key, without its text',
      permission: 'application:read',
      params: byKeyId,
      reply: { status: 200, body: applicationKey },
      handle: ({ caller, params }) => readKey(tools, caller, params),
    }),
    route({
      method: 'DELETE',
      path: '/applications/:id/keys/:keyId',
      summary: 'Delete a key',
      permission: 'application:delete',
      params: byKeyId,
      reply: { status: 204 },
      handle: ({ caller, params }) => deleteKey(tools, caller, params),
    }),
    route({
      method: 'POST',
      path: '/applications/:id/regenerate',
      summary: 'Removed; create another key and delete the old one',
      permission: 'application:update',
      params: byId,
      reply: { status: 204 },
      handle: () => regenerateKey(),
    }),
  ];
}
