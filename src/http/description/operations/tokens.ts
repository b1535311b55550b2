/** Operations on tokens and token intents. */
import { cardExample, idOf, type Section } from './operation-row.ts';

const id = 'order-4711-card';
const intent = idOf(1);

export const tokens: Section = {
  tag: 'Tokens',
  description:
    'A token stands for a value that is stored encrypted. What a response shows of the value is decided by the ' +
    "caller's access rules: everything, what the mask leaves, or nothing.",
  operations: {
    'POST /tokens': {
      id: 'createToken',
      description:
        'Give either `type` and `data`, or the `token_intent_id` of a token intent. The response is masked ' +
        'unless a rule with `token:create` reveals it.',
      problems: ['not_found'],
      example: {
        body: {
          id,
          type: 'card',
          data: cardExample,
          metadata: { order: '4711' },
          search_indexes: ['{{ data.number | last4 }}'],
        },
        reply: {
          id,
          type: 'card',
          card: {
            bin: '42424242',
            last4: '4242',
            expiration_month: 12,
            expiration_year: 2030,
            brand: 'visa',
          },
          containers: ['/pci/high/'],
          metadata: { order: '4711' },
          created_at: '2026-01-31T09:30:00.000+00:00',
          _extras: { deduplicated: false },
        },
      },
    },
    'GET /tokens/:id': {
      id: 'getToken',
      example: { params: { id }, reply: { id, type: 'card', data: cardExample } },
    },
    'PATCH /tokens/:id': {
      id: 'updateToken',
      description:
        'Members that are absent stay, null removes. `containers`, `search_indexes` and the other attributes that ' +
        'are not objects are replaced.',
      example: {
        params: { id },
        body: { data: { expiration_year: 2031 }, metadata: { order: '4712' } },
        reply: { id, metadata: { order: '4712' } },
      },
    },
    'GET /v2/tokens': {
      id: 'listTokens',
      description: 'Follow `pagination.next` until it is absent.',
      example: {
        query: { container: '/pci/', type: 'card', size: '10' },
        reply: { pagination: { page_size: 10 }, data: [{ id, type: 'card' }] },
      },
    },
    'GET /tokens': {
      id: 'listTokensByPage',
      description: 'The first version of the list, with exact totals.',
      example: {
        query: { id, page: '1', size: '10' },
        reply: {
          pagination: { total_items: 1, page_number: 1, page_size: 10, total_pages: 1 },
          data: [{ id, type: 'card' }],
        },
      },
    },
    'POST /v2/tokens/search': {
      id: 'searchTokens',
      description:
        'The query is one term: `data:<value>` of a search index, or `metadata.<key>:<value>`.',
      example: {
        body: { query: 'data:4242', size: 10 },
        reply: { pagination: { page_size: 10 }, data: [{ id, type: 'card' }] },
      },
    },
    'POST /tokens/search': {
      id: 'searchTokensByPage',
      description:
        'The first version of the search, with exact totals and several terms in one query.',
      example: {
        body: { query: 'metadata.order:4712', page: 1 },
        reply: { pagination: { total_items: 1 }, data: [{ id }] },
      },
    },
    'POST /tokens/bulk': {
      id: 'createTokens',
      description:
        'Each line of the body is the body of one create request. Each line of the response has the number of its ' +
        'request line, and the token or the problem. A line that fails does not stop the others. It takes no ' +
        'idempotency key; give each line an `id` instead.',
      example: {
        body: [
          { id: 'line-1', type: 'token', data: 'one' },
          { id: 'line-2', type: 'card_number', data: '5555555555554444' },
        ],
        reply: [
          { line: 1, status: 201, token: { id: 'line-1', type: 'token' } },
          { line: 2, status: 201, token: { id: 'line-2', type: 'card_number' } },
        ],
      },
    },
    'GET /tokens/export': {
      id: 'exportTokens',
      description:
        'One token a line. The last line has the number of tokens; an export without it was cut off.',
      example: {
        query: { container: '/pci/' },
        reply: [{ id: 'line-2', type: 'card_number' }, { id }, { exported: 2 }],
      },
    },
    'DELETE /tokens/:id': { id: 'deleteToken', example: { params: { id: 'line-1' } } },
  },
};

export const tokenIntents: Section = {
  tag: 'Token intents',
  description:
    'Validated data that is not yet a token: a page collects it, a server decides whether it becomes one. It is ' +
    'deleted after the tenant’s quota `token_intent_retention`.',
  operations: {
    'POST /token-intents': {
      id: 'createTokenIntent',
      example: {
        body: { type: 'card', data: cardExample },
        reply: { id: intent, type: 'card', card: { brand: 'visa', last4: '4242' } },
      },
    },
    'GET /token-intents/:id': {
      id: 'getTokenIntent',
      example: { params: { id: intent }, reply: { id: intent, type: 'card' } },
    },
    'DELETE /token-intents/:id': { id: 'deleteTokenIntent', example: { params: { id: intent } } },
  },
};

export const tokenization: Section = {
  tag: 'Tokenize and detokenize',
  description: 'Whole JSON documents, in which values become tokens and references become values.',
  operations: {
    'POST /tokenize': {
      id: 'tokenize',
      description:
        'Every string, number and boolean becomes a token of the type `token`, and its id takes its place. An object ' +
        'with `type` and `data` is a create request, in the place of which the token appears.',
      example: {
        body: {
          first_name: 'Ada',
          card: { id: 'tokenized-card', type: 'card', data: cardExample },
        },
        reply: { first_name: idOf(2), card: { id: 'tokenized-card', type: 'card' } },
      },
    },
    'POST /detokenize': {
      id: 'detokenize',
      description:
        'A string that holds `{{ <id> }}` becomes the data of that token, also with filters: ' +
        "`{{ <id> | json: '$.number' }}`. `{{ token: <id> }}` gives the whole token.",
      problems: ['not_found'],
      example: {
        body: { number: "{{ tokenized-card | json: '$.number' }}", name: `{{ ${idOf(2)} }}` },
        reply: { number: '4242424242424242', name: 'Ada' },
      },
    },
  },
};

export const enrichments: Section = {
  tag: 'Enrichments',
  description: 'What is known about a bank account or a card.',
  operations: {
    'POST /enrichments/bank-account-verify': {
      id: 'verifyBankAccount',
      description: 'The token is of the type `bank` or `us_bank_account_number`.',
      problems: ['not_found'],
      example: {
        body: { token_id: 'example-bank', country_code: 'US' },
        reply: { status: 'enabled' },
      },
    },
    'GET /enrichments/card-details': {
      id: 'getCardDetails',
      example: { query: { bin: '42424242' }, reply: { brand: 'visa' } },
    },
  },
};
