/** The OpenAPI 3.1 document, made from the declared routes so that it cannot say anything else. */
import type { TSchema } from 'typebox';
import { type ErrorCode, errorKinds } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { bodyBytesMax } from '../protocol/body.ts';
import { linesMediaType, type OpenRoute, type Route } from '../protocol/route.ts';
import { callMethods, callPath } from '../proxy/methods.ts';
import type { Schema } from '../schemas/shared.ts';
import { titleOf } from '../schemas/shared.ts';
import { problem } from '../schemas/token-stream.ts';
import { type Components, createComponents } from './components.ts';
import { exampleText } from './example-text.ts';
import { type HeaderComponents, headersOf } from './headers.ts';
import { type OpenOperation, openOperationsOf } from './open-operations.ts';
import { byStatus, type Operation, openProblems, operationsOf } from './operation.ts';
import { sections } from './operations/sections.ts';
import { parametersOf } from './parameters.ts';
import recorded from './response-examples.json' with { type: 'json' };
import { unionOf } from './token-requests.ts';

export interface OpenapiOptions {
  readonly routes: readonly Route[];
  readonly openRoutes: readonly OpenRoute[];
  /** The service's own header prefix, such as `SVC`. */
  readonly headerPrefix: string;
  readonly version: string;
}

const overview =
  'Strongroom stores sensitive values as tokens. Every request carries a key in a header, and access rules decide ' +
  'what a response shows of a value. Failures are problem documents (RFC 9457) that name attributes and never repeat ' +
  'a value.';

const bytes = bodyBytesMax.toLocaleString('en');

interface SharedParts {
  readonly components: Components;
  readonly headers: HeaderComponents;
}

export function openapiOf(options: OpenapiOptions): object {
  const shared = { components: createComponents(), headers: headersOf(options.headerPrefix) };
  const { components, headers } = shared;
  const operations = operationsOf(options.routes);
  const open = openOperationsOf(options.openRoutes);
  const paths: Record<string, Record<string, object>> = {};
  for (const operation of operations) {
    const { path, method } = operation;
    paths[path] = { ...paths[path], [method.toLowerCase()]: describe(operation, shared) };
  }
  for (const operation of open) paths[operation.path] = { get: describeOpen(operation, shared) };
  paths[callPath] = callsOf(shared);
  const used = new Set([...operations, ...open].map(({ tag }) => tag)).add(callTag);
  components.refer(problem);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Strongroom',
      version: options.version,
      description: overview,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      contact: { name: 'The operator of this vault' },
    },
    servers: [{ url: '/', description: 'The vault that serves this document' }],
    tags: tags.filter(({ name }) => used.has(name)),
    security: [{ key: [] }],
    paths,
    components: {
      securitySchemes: {
        key: {
          type: 'apiKey',
          in: 'header',
          name: headers.key,
          description: 'The key of an application, or of an authorized session.',
        },
      },
      parameters: headers.parameters,
      headers: headers.responses,
      responses: problemResponses(operations, headers),
      schemas: Object.fromEntries([...components.schemas].sort(([a], [b]) => (a < b ? -1 : 1))),
    },
  };
}

const tags = [
  ...sections.map(({ tag, description }) => ({ name: tag, description })),
  { name: 'Service', description: 'About the vault itself. These need no key.' },
  { name: 'Other', description: 'Everything else.' },
];

/** What each operation was answered with; see `tests/support/response-examples.ts`. */
const examples: Readonly<Record<string, Json | undefined>> = recorded;

function describe(operation: Operation, shared: SharedParts): object {
  const { route, row, takesIdempotencyKey } = operation;
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    description: operation.description,
    'x-permission': route.permission,
    'x-key-kinds': operation.kinds,
    ...(row?.problems?.includes('gone') && { deprecated: true }),
    parameters: [
      ...parametersOf(operation, shared.components),
      ...(takesIdempotencyKey ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
      { $ref: '#/components/parameters/TraceId' },
    ],
    ...(route.body && { requestBody: requestBodyOf(operation, route.body, shared) }),
    responses: { ...successOf(operation, shared), ...refusals(operation.problems.keys()) },
  };
}

const callTag = 'Proxies';

/** Of failures of the vault itself; any other status is the destination's. */
const callFailures: Readonly<Record<string, string>> = {
  400: 'The call, an expression or a reference in it is not valid',
  401: 'The API key is missing or not valid',
  403: 'The caller, the proxy or the tenant does not allow it',
  404: 'There is no such proxy',
  408: 'The destination took too long',
  413: 'The body is too large for the expressions in it',
  429: 'Too many requests',
  502: 'The destination was not reached, or did not respond as it should',
};

const callMethodsWithBody = ['POST', 'PUT', 'PATCH'];

const anyBody = {
  description:
    'Any body. Expressions in it, such as `{{ token: 4f8d… }}`, are replaced by the values of tokens.',
  content: { '*/*': { schema: {} } },
};

/** What is sent and what is received are the destination's business. */
function callsOf({ headers, components }: SharedParts): Record<string, object> {
  const schema = {
    type: 'object',
    title: 'ProxyError',
    required: ['proxy_error'],
    properties: { proxy_error: components.refer(problem) },
  };
  const failures = Object.entries(callFailures).map(([status, description]) => [
    status,
    {
      description,
      headers: headers.of(Number(status)),
      content: { 'application/json': { schema } },
    },
  ]);
  const calls = Object.entries(callMethods).map(([method, summary]) => [
    method.toLowerCase(),
    {
      operationId: `${method.toLowerCase()}ThroughProxy`,
      tags: [callTag],
      summary,
      description:
        'Also for every path below it. Needs the permission `proxy:invoke`, unless the proxy asks for no key.',
      parameters: ['ProxyKey', 'ProxyUrl', 'TraceId'].map((name) => ({
        $ref: `#/components/parameters/${name}`,
      })),
      ...(callMethodsWithBody.includes(method) && { requestBody: anyBody }),
      responses: {
        ...Object.fromEntries(failures),
        200: { description: "The destination's response", headers: headers.of(200) },
        default: { description: "The destination's response, with another status" },
      },
    },
  ]);
  return Object.fromEntries(calls);
}

function describeOpen(
  { id, tag, summary, responses }: OpenOperation,
  { headers }: SharedParts,
): object {
  const replies = Object.entries(responses).map(([status, content]) => [
    status,
    {
      description: descriptions[Number(status)] ?? 'Not at the moment',
      headers: headers.of(Number(status) === 200 ? 200 : 500),
      ...(content && { content: { [content.mediaType]: { schema: content.schema } } }),
    },
  ]);
  const refused = byStatus(openProblems).keys();
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: 'Needs no key.',
    security: [],
    responses: { ...Object.fromEntries(replies), ...refusals(refused) },
  };
}

function requestBodyOf(operation: Operation, body: TSchema, { components }: SharedParts): object {
  const { route, row, isStream } = operation;
  const { mediaType = 'application/json', otherMediaType } = route;
  const schema = bodySchema(body, components);
  const given = row?.example.body;
  const content = isStream
    ? linesOf(schema, given)
    : { schema, ...(given !== undefined && { example: given }) };
  const types = [mediaType, ...(otherMediaType === undefined ? [] : [otherMediaType])];
  return {
    required: route.bodyMayBeEmpty !== true,
    description: isStream
      ? `Lines of JSON, each of at most ${bytes} bytes, and any number of them.`
      : `JSON in UTF-8 of at most ${bytes} bytes.`,
    content: Object.fromEntries(types.map((type) => [type, content])),
  };
}

/** A union takes the name of the schema that it explains. */
function bodySchema(body: TSchema, components: Components): Schema {
  const union = unionOf(components, body);
  return union === undefined
    ? components.refer(body)
    : components.define(titleOf(body) ?? 'Request', union);
}

/** Newline-delimited JSON is a text; what a line holds is the schema of its content. */
function linesOf(line: Schema, example: unknown): Schema {
  return {
    schema: {
      type: 'string',
      contentMediaType: linesMediaType,
      contentSchema: line,
      description: 'One JSON text a line, each ended by a line feed. The schema is that of a line.',
    },
    ...(example !== undefined && { example: exampleText(example, true) }),
  };
}

function successOf(
  { id, route, isStream }: Operation,
  { components, headers }: SharedParts,
): object {
  const { status, body, mediaType = 'application/json' } = route.reply;
  const example = examples[id];
  const content = (schema: Schema) =>
    isStream ? linesOf(schema, example) : { schema, ...(example !== undefined && { example }) };
  return {
    [status]: {
      description: descriptions[status] ?? 'Done',
      headers: headers.of(status),
      ...(body && { content: { [mediaType]: content(components.refer(body)) } }),
    },
  };
}

const descriptions: Readonly<Record<number, string>> = {
  200: 'Done.',
  201: 'Created.',
  204: 'Done. The response has no body.',
  304: 'What the caller has is still what it would be sent.',
};

function refusals(statuses: Iterable<number>): object {
  return Object.fromEntries(
    [...statuses].map((status) => [status, { $ref: `#/components/responses/Problem${status}` }]),
  );
}

/** One for each status, with the types of problems that have it. */
function problemResponses(operations: readonly Operation[], headers: HeaderComponents): object {
  const codes = operations.flatMap(({ problems }) => [...problems.values()].flat());
  return Object.fromEntries(
    [...byStatus([...codes, ...openProblems])].map(([status, codes]) => [
      `Problem${status}`,
      {
        description: [...new Set(codes.map((code) => errorKinds[code].title))].join(', or: '),
        headers: headers.of(status),
        content: { 'application/problem+json': { schema: problemSchema(status, codes) } },
      },
    ]),
  );
}

function problemSchema(status: number, codes: readonly ErrorCode[]): object {
  return {
    allOf: [
      { $ref: '#/components/schemas/Problem' },
      {
        type: 'object',
        properties: {
          type: { enum: codes.map((code) => `urn:strongroom:problem:${code}`) },
          status: { const: status },
        },
      },
    ],
  };
}
