/** Routes that turn any JSON into tokens, and references to tokens back into their data. */
import type { Json } from '../../lib/json.ts';
import { detokenize } from '../../vault/tokenization/detokenize.ts';
import { tokenize, tokensIn } from '../../vault/tokenization/tokenize.ts';
import type { TokenWriting } from '../../vault/tokens/create.ts';
import { type Route, route } from '../protocol/route.ts';
import { readTokenRequest } from '../protocol/token-request.ts';
import { anyJson } from '../schemas/shared.ts';

export function tokenizationRoutes(tools: TokenWriting): Route[] {
  return [
    route({
      method: 'POST',
      path: '/tokenize',
      summary: 'Create a token for every value of any JSON',
      permission: 'token:create',
      body: anyJson,
      reply: { status: 200, body: anyJson },
      parts: (body) => tokensIn(body as Json),
      handle: ({ caller, body }) =>
        tokenize(tools, caller, { body, readRequest: readTokenRequest }),
    }),
    route({
      method: 'POST',
      path: '/detokenize',
      summary: 'Replace references to tokens in any JSON by their data',
      permission: 'token:read',
      body: anyJson,
      reply: { status: 200, body: anyJson },
      handle: ({ caller, body }) => detokenize(tools, caller, body),
    }),
  ];
}
