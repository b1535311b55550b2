/** Routes that turn any JSON into tokens, and references to tokens back into what they hold. */
import type { JsonObject } from '../../lib/json.ts';
import type { TokenWriting } from '../../vault/create-tokens.ts';
import { detokenize } from '../../vault/detokenize.ts';
import type { TokenRequest } from '../../vault/token-contents.ts';
import { tokenize } from '../../vault/tokenize.ts';
import { type Route, route } from '../route.ts';
import { anyJson } from '../schemas/shared.ts';
import { tokenRequest } from '../schemas/token.ts';
import { compileValidator } from '../validation.ts';

export function tokenizationRoutes(tools: TokenWriting): Route[] {
  const validate = compileValidator(tokenRequest, 'body');
  const readRequest = (json: JsonObject): TokenRequest => {
    const validated = validate(json);
    if ('error' in validated) throw validated.error;
    return validated.value as TokenRequest;
  };
  return [
    route({
      method: 'POST',
      path: '/tokenize',
      summary: 'Create a token for every value of any JSON',
      permission: 'token:create',
      body: anyJson,
      reply: { status: 200, body: anyJson },
      handle: ({ caller, body }) => tokenize(tools, caller, { body, readRequest }),
    }),
    route({
      method: 'POST',
      path: '/detokenize',
      summary: 'Replace references to tokens in any JSON by what they hold',
      permission: 'token:read',
      body: anyJson,
      reply: { status: 200, body: anyJson },
      handle: ({ caller, body }) => detokenize(tools, caller, body),
    }),
  ];
}
