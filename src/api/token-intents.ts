/** Token intents: validated data that is not yet a token. */
import {
  createTokenIntent,
  deleteTokenIntent,
  readTokenIntent,
  type TokenIntentWriting,
} from '../tokens/intents/token-intents.ts';
import { idOf, operation, type Resource } from './declaration/operation.ts';
import { attribute, object } from './declaration/shape.ts';
import { byId, shared, text, timestamp } from './shapes.ts';
import { cardExample, token, tokenIntentRequest } from './token-shapes.ts';

const { id, tenant_id, created_by, created_at } = shared;
const { type, card, bank, fingerprint } = token.properties;

/** A token intent as it leaves: never with its data. */
const tokenIntent = object(
  {
    id,
    tenant_id,
    type: attribute(text, type),
    card,
    bank,
    fingerprint,
    created_by,
    created_at,
    expires_at: attribute(timestamp, 'When it is deleted unless it became a token.'),
  },
  { title: 'TokenIntent' },
);

const intent = idOf(1);

export const tokenIntents: Resource<TokenIntentWriting> = {
  tag: 'Token intents',
  description:
    'Validated data that is not yet a token: a page collects it, a server decides whether it becomes one. It is ' +
    'deleted after the tenant’s quota `token_intent_retention`.',
  operations: (tools) => [
    operation({
      id: 'createTokenIntent',
      method: 'POST',
      path: '/token-intents',
      summary: 'Store validated data that can become a token',
      permission: 'token-intent:create',
      body: tokenIntentRequest,
      reply: { status: 201, body: tokenIntent },
      example: {
        body: { type: 'card', data: cardExample },
        reply: { id: intent, type: 'card', card: { brand: 'visa', last4: '4242' } },
      },
      handle: ({ caller, body }) => createTokenIntent(tools, caller, body),
    }),
    operation({
      id: 'getTokenIntent',
      method: 'GET',
      path: '/token-intents/:id',
      summary: 'Read a token intent, without its data',
      permission: 'token-intent:read',
      params: byId,
      reply: { status: 200, body: tokenIntent },
      example: { params: { id: intent }, reply: { id: intent, type: 'card' } },
      handle: ({ caller, params }) => readTokenIntent(tools, caller, params.id),
    }),
    operation({
      id: 'deleteTokenIntent',
      method: 'DELETE',
      path: '/token-intents/:id',
      summary: 'Delete a token intent',
      permission: 'token-intent:delete',
      params: byId,
      reply: { status: 204 },
      example: { params: { id: intent } },
      handle: ({ caller, params }) => deleteTokenIntent(tools, caller, params.id),
    }),
  ],
};
