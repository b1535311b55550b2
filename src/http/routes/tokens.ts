/** Routes of tokens. */
import { createToken, serialKeyOfCreation, type TokenWriting } from '../../vault/tokens/create.ts';
import { deleteToken } from '../../vault/tokens/delete.ts';
import { readToken } from '../../vault/tokens/read.ts';
import { updateToken } from '../../vault/tokens/update.ts';
import { type Route, route } from '../protocol/route.ts';
import { byId } from '../schemas/shared.ts';
import { token, tokenPatch, tokenRequest } from '../schemas/token.ts';

export function tokenRoutes(tools: TokenWriting): Route[] {
  return [
    route({
      method: 'POST',
      path: '/tokens',
      summary: 'Create a token',
      permission: 'token:create',
      body: tokenRequest,
      reply: { status: 201, body: token },
      serialKey: ({ caller, body }) => serialKeyOfCreation(caller, body),
      handle: ({ caller, body }) => createToken(tools, caller, body),
    }),
    route({
      method: 'GET',
      path: '/tokens/:id',
      summary: 'Read a token',
      permission: 'token:read',
      params: byId,
      reply: { status: 200, body: token },
      handle: ({ caller, params }) => readToken(tools, caller, params.id),
    }),
    route({
      method: 'PATCH',
      path: '/tokens/:id',
      summary: 'Update a token by JSON merge patch',
      permission: 'token:update',
      params: byId,
      body: tokenPatch,
      mediaType: 'application/merge-patch+json',
      reply: { status: 200, body: token },
      serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
      handle: ({ caller, params, body }) =>
        updateToken(tools, caller, { id: params.id, patch: body }),
    }),
    route({
      method: 'DELETE',
      path: '/tokens/:id',
      summary: 'Delete a token',
      permission: 'token:delete',
      params: byId,
      reply: { status: 204 },
      serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
      handle: ({ caller, params }) => deleteToken(tools, caller, params.id),
    }),
  ];
}
