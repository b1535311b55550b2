/** Tokens: creating, reading, updating and deleting them, one by one or in bulk. */
import Type from 'typebox';
import { type ImportTools, importStream } from '../http/bulk/import-stream.ts';
import { linesMediaType } from '../http/protocol/route.ts';
import { compileSerializer } from '../http/protocol/serialization.ts';
import { createToken, serialKeyOfCreation } from '../tokens/create.ts';
import { deleteToken } from '../tokens/delete.ts';
import { type ErasureReading, readErasure } from '../tokens/erasure.ts';
import { readToken } from '../tokens/read.ts';
import { updateToken } from '../tokens/update.ts';
import { operation, type Resource, streamOperation } from './declaration/operation.ts';
import { attribute, object } from './declaration/shape.ts';
import { byId, problem, text, timestamp, uuid } from './shapes.ts';
import { tokenExport, tokenLists } from './token-lists.ts';
import { cardExample, token, tokenPatch, tokenRequest } from './token-shapes.ts';

const createdLine = object(
  {
    line: attribute(
      Type.Optional(Type.Integer()),
      'The number of the line in the request, from 1.',
    ),
    status: attribute(
      Type.Optional(Type.Integer()),
      'The HTTP status that a request for this line alone would have had.',
    ),
    token: attribute(Type.Optional(token), 'The token.'),
    problem: attribute(Type.Optional(problem), 'Why it failed.'),
  },
  {
    title: 'CreatedLine',
    description:
      'The result of one line of the request: the token, or the problem. A line that has only a problem ' +
      'ends a response that could not continue; the lines after the last numbered one were not processed.',
  },
);

/** A line of the response to an import, on whichever thread it is made. */
export const serializeLine = compileSerializer(createdLine);

const introduction = object({
  statement: attribute(text, 'The checkpoint, whose `introduces` is a public key.'),
  signature: attribute(text, 'A signature over the statement, in base64.'),
  public_key: attribute(text, 'The key that verifies it, in base64.'),
});

const leftovers = object(
  {
    gone_by: attribute(timestamp, 'By then they are off the disk.'),
    gone: attribute(
      Type.Boolean(),
      'Whether the vault found none of that age when it issued the receipt.',
    ),
  },
  { title: 'ErasedCopies' },
);

const timeOrNull = Type.Union([timestamp, Type.Null()]);

/** `statement` is the signed string; the attributes before it are extracted from it. */
const receipt = object(
  {
    tenant_id: attribute(uuid, 'The tenant that owned the token.'),
    entity: attribute(text, 'What was erased: `token`.'),
    id: attribute(text, 'The id that the token had.'),
    operation: attribute(text, '`delete` or `expire`.'),
    erased_at: attribute(timestamp, 'When the token was removed.'),
    log_entry: attribute(
      object({
        stream_id: attribute(text, 'The stream of the log that has the entry.'),
        seq: attribute(Type.Integer(), 'The number of the entry in its stream.'),
        head_seq: attribute(Type.Integer(), 'The number of the last entry of its block.'),
        head_hash: attribute(text, 'The hash of that entry, which covers all entries before it.'),
      }),
      'The log entry of the removal.',
    ),
    row_gone_at: attribute(timestamp, 'When the row with the sealed data was removed.'),
    search_terms_gone_at: attribute(timestamp, 'When the search terms were removed.'),
    stored_responses: attribute(leftovers, 'Responses that are stored for idempotency keys.'),
    results: attribute(leftovers, 'Arguments and results of calls of reactors.'),
    keys: attribute(
      Type.Array(
        object({
          purpose: attribute(text, 'What the key is for: `data`.'),
          version: attribute(
            Type.Union([Type.Integer(), Type.Null()]),
            'Its version; null where the token had been altered outside the vault.',
          ),
          state: attribute(text, '`active`, `decrypt_only`, `destroyed` or `unknown`.'),
          created_at: attribute(timeOrNull, 'When it was created.'),
          destroyed_at: attribute(timeOrNull, 'When it was destroyed.'),
          due_at: attribute(timeOrNull, 'From when it can be destroyed, if that is known.'),
        }),
      ),
      'The keys that sealed the token.',
    ),
    root_key: attribute(
      Type.Union([
        object({
          source: attribute(text, 'Where the root key is kept.'),
          key_id: attribute(text, 'Its name there.'),
          version: attribute(Type.Integer(), 'Its version there.'),
        }),
        Type.Null(),
      ]),
      'The root key that wraps the key of the token in backups that are made now.',
    ),
    issued_at: attribute(timestamp, 'When the receipt was issued.'),
    statement: attribute(text, 'The text that is signed.'),
    signature: attribute(text, 'An Ed25519 signature over the statement, in base64.'),
    public_key: attribute(text, 'The key that verifies it, in base64.'),
    public_key_pem: attribute(text, 'The same key in PEM, as its SubjectPublicKeyInfo.'),
    public_keys: attribute(Type.Array(text), 'All keys that signed statements about this log.'),
    introductions: attribute(
      Type.Array(introduction),
      'Checkpoints of the log, in each of which a key introduces the next one. They lead from an earlier key that ' +
        'you have stored to `public_key`.',
    ),
  },
  { title: 'ErasureReceipt' },
);

const id = 'order-4711-card';

export const tokens: Resource<ImportTools & ErasureReading> = {
  tag: 'Tokens',
  description:
    'A token stands for a value that is stored encrypted. What a response shows of the value is decided by the ' +
    "caller's access rules: everything, what the mask leaves, or nothing.",
  operations: (tools) => [
    operation({
      id: 'createToken',
      method: 'POST',
      path: '/tokens',
      summary: 'Create a token',
      description:
        'Give either `type` and `data`, or the `token_intent_id` of a token intent. The response is masked ' +
        'unless a rule with `token:create` reveals it.',
      permission: 'token:create',
      tagged: true,
      body: tokenRequest,
      reply: { status: 201, body: token },
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
      serialKey: ({ caller, body }) => serialKeyOfCreation(caller, body),
      handle: ({ caller, body }) => createToken(tools, caller, body),
    }),
    operation({
      id: 'getToken',
      method: 'GET',
      path: '/tokens/:id',
      summary: 'Read a token',
      permission: 'token:read',
      tagged: true,
      params: byId,
      reply: { status: 200, body: token },
      example: { params: { id }, reply: { id, type: 'card', data: cardExample } },
      handle: ({ caller, params }) => readToken(tools, caller, params.id),
    }),
    operation({
      id: 'updateToken',
      method: 'PATCH',
      path: '/tokens/:id',
      summary: 'Update a token by JSON merge patch',
      description:
        'Absent members stay as they are, and null removes a member. `containers`, `search_indexes`, and other ' +
        'attributes that are not objects are replaced.',
      permission: 'token:update',
      tagged: true,
      params: byId,
      body: tokenPatch,
      mediaType: 'application/merge-patch+json',
      reply: { status: 200, body: token },
      example: {
        params: { id },
        body: { data: { expiration_year: 2031 }, metadata: { order: '4712' } },
        reply: { id, metadata: { order: '4712' } },
      },
      serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
      handle: ({ caller, params, body }) =>
        updateToken(tools, caller, { id: params.id, patch: body }),
    }),
    ...tokenLists(tools),
    streamOperation({
      id: 'createTokens',
      method: 'POST',
      path: '/tokens/bulk',
      summary: 'Create tokens in bulk, with a create request on each line',
      description:
        'Each line of the body is the body of one create request. Each line of the response has the number of its ' +
        'request line, and the token or the problem. A line that fails does not stop the others. It takes no ' +
        'idempotency key; give each line an `id` instead.',
      permission: 'token:create',
      body: tokenRequest,
      mediaType: linesMediaType,
      reply: { status: 200, body: createdLine, mediaType: linesMediaType },
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
      stream: (request) => importStream(tools, request),
    }),
    tokenExport(tools),
    operation({
      id: 'deleteToken',
      method: 'DELETE',
      path: '/tokens/:id',
      summary: 'Delete a token',
      permission: 'token:delete',
      tagged: true,
      params: byId,
      reply: { status: 204 },
      example: { params: { id: 'line-1' } },
      serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
      handle: ({ caller, params }) => deleteToken(tools, caller, params.id),
    }),
    operation({
      id: 'getTokenErasure',
      method: 'GET',
      path: '/tokens/:id/erasure',
      summary: 'Read a signed receipt that a token is erased',
      description:
        'For a token that was deleted or has expired, for as long as the log has the entry. A key with `log:read` ' +
        'can read the receipt of every token, a key with `token:delete` those of tokens it could have deleted. The ' +
        'attributes before `statement` are taken from it; the signature is over its text.',
      permission: 'token:delete',
      alternative: 'log:read',
      params: byId,
      reply: { status: 200, body: receipt },
      problems: ['not_found'],
      example: { params: { id: 'line-1' }, reply: { id: 'line-1', operation: 'delete' } },
      handle: ({ caller, params }) => readErasure(tools, caller, params.id),
    }),
  ],
};
