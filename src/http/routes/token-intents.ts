/** Routes of token intents. */
import {
  createTokenIntent,
  deleteTokenIntent,
  readTokenIntent,
  type TokenIntentWriting,
} from '../../vault/token-intents/token-intents.ts';
import { type Route, route } from '../protocol/route.ts';
import { byId } from '../schemas/shared.ts';
import { tokenIntent, tokenIntentRequest } from '../schemas/token-intent.ts';

export function tokenIntentRoutes(tools: TokenIntentWriting): Route[] {
  return [
    route({
      method: 'POST',
      path: '/token-intents',
      summary: 'Store validated data that can become a token',
      permission: 'token-intent:create',
      body: tokenIntentRequest,
      reply: { status: 201, body: tokenIntent },
      handle: ({ caller, body }) => createTokenIntent(tools, caller, body),
    }),
    route({
      method: 'GET',
      path: '/token-intents/:id',
      summary: 'Read a token intent, without its data',
      permission: 'token-intent:read',
      params: byId,
      reply: { status: 200, body: tokenIntent },
      handle: ({ caller, params }) => readTokenIntent(tools, caller, params.id),
    }),
    route({
      method: 'DELETE',
      path: '/token-intents/:id',
      summary: 'Delete a token intent',
      permission: 'token-intent:delete',
      params: byId,
      reply: { status: 204 },
      handle: ({ caller, params }) => deleteTokenIntent(tools, caller, params.id),
    }),
  ];
}
