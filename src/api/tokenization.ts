/** Turning any JSON into tokens, and references to tokens back into their data. */
import type { Json } from '../base/json.ts';
import type { TokenWriting } from '../tokens/create.ts';
import { detokenize } from '../tokens/tokenization/detokenize.ts';
import { tokenize, tokensIn } from '../tokens/tokenization/tokenize.ts';
import { idOf, operation, type Resource } from './declaration/operation.ts';
import { anyJson } from './shapes.ts';
import { cardExample, tokenReaders } from './token-shapes.ts';

export const tokenization: Resource<TokenWriting> = {
  tag: 'Tokenize and detokenize',
  description: 'Whole JSON documents, in which values become tokens and references become values.',
  operations: (tools) => [
    operation({
      id: 'tokenize',
      method: 'POST',
      path: '/tokenize',
      summary: 'Replace the values in any JSON with tokens',
      description:
        'Each string, number, and boolean becomes a token of the type `token` and is replaced by its id. An object ' +
        'with `type` and `data` is a create request and is replaced by the token.',
      permission: 'token:create',
      body: anyJson,
      reply: { status: 200, body: anyJson },
      example: {
        body: {
          first_name: 'Ada',
          card: { id: 'tokenized-card', type: 'card', data: cardExample },
        },
        reply: { first_name: idOf(2), card: { id: 'tokenized-card', type: 'card' } },
      },
      parts: (body) => tokensIn(body as Json),
      handle: ({ caller, body }) =>
        tokenize(tools, caller, { body, readRequest: tokenReaders.readRequest }),
    }),
    operation({
      id: 'detokenize',
      method: 'POST',
      path: '/detokenize',
      summary: 'Replace references to tokens in any JSON with their data',
      description:
        'A string that holds `{{ <id> }}` becomes the data of that token, also with filters: ' +
        "`{{ <id> | json: '$.number' }}`. `{{ token: <id> }}` gives the whole token.",
      permission: 'token:read',
      body: anyJson,
      reply: { status: 200, body: anyJson },
      problems: ['not_found'],
      example: {
        body: { number: "{{ tokenized-card | json: '$.number' }}", name: `{{ ${idOf(2)} }}` },
        reply: { number: '4242424242424242', name: 'Ada' },
      },
      handle: ({ caller, body }) => detokenize(tools, caller, body),
    }),
  ],
};
