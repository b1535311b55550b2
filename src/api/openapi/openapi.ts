/** The OpenAPI 3.1 document, generated from the declared operations so that the two cannot differ. */
import type { TSchema } from 'typebox';
import { type ErrorCode, errorKinds } from '../../base/errors.ts';
import type { Json } from '../../base/json.ts';
import { bodyBytesMax } from '../../http/protocol/body.ts';
import { linesMediaType } from '../../http/protocol/route.ts';
import { callPath } from '../../http/proxy/methods.ts';
import type { OpenOperation } from '../declaration/operation.ts';
import { proxyCalls } from '../proxies.ts';
import type { DescribedApi } from '../service.ts';
import { problem } from '../shapes.ts';
import { type Components, createComponents, type Schema } from './components.ts';
import { exampleText } from './example-text.ts';
import { type HeaderComponents, headersOf } from './headers.ts';
import { parametersOf } from './parameters.ts';
import {
  byStatus,
  openProblems,
  type PublishedOperation,
  publishedIn,
  templateOf,
} from './published-operation.ts';
import { referenceFacts } from './reference-facts.ts';
import recorded from './response-examples.json' with { type: 'json' };

const overview =
  'Strongroom stores sensitive values as tokens. Every request carries a key in a header, and access rules decide ' +
  'what a response shows of a value. Failures are problem documents (RFC 9457) that name attributes and never repeat ' +
  'a value.';

const bytes = bodyBytesMax.toLocaleString('en');

interface SharedParts {
  readonly components: Components;
  readonly headers: HeaderComponents;
}

export function openapiOf(options: DescribedApi): object {
  const shared = { components: createComponents(), headers: headersOf(options.headerPrefix) };
  const { components, headers } = shared;
  const operations = publishedIn(options.sections);
  const paths: Record<string, Record<string, object>> = {};
  for (const published of operations) {
    const { path, operation } = published;
    const method = operation.method.toLowerCase();
    paths[path] = { ...paths[path], [method]: describe(published, shared) };
  }
  for (const operation of options.open) {
    paths[templateOf(operation.path)] = { get: describeOpen(operation, shared) };
  }
  paths[callPath] = callsOf(shared);
  components.refer(problem);
  const facts = referenceFacts(components);
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
    tags: [
      ...options.sections.map(({ tag, description }) => ({ name: tag, description })),
      { name: openTag, description: 'About the vault itself. These need no key.' },
    ],
    security: [{ key: [] }],
    'x-reference': facts,
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

const openTag = 'Service';

/** The recorded response of each operation; see `tests/support/response-examples.ts`. */
const examples: Readonly<Record<string, Json | undefined>> = recorded;

function describe(published: PublishedOperation, shared: SharedParts): object {
  const { operation, takesIdempotencyKey, takesIfMatch } = published;
  const { id, summary, permission, problems, body } = operation;
  return {
    operationId: id,
    tags: [published.tag],
    summary,
    description: published.description,
    'x-permission': permission,
    'x-key-kinds': published.kinds,
    'x-problems': [...published.problems.values()].flat(),
    ...(problems?.includes('gone') && { deprecated: true }),
    parameters: [
      ...parametersOf(published, shared.components),
      ...(takesIdempotencyKey ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
      ...(takesIfMatch ? [{ $ref: '#/components/parameters/IfMatch' }] : []),
      { $ref: '#/components/parameters/TraceId' },
    ],
    ...(body && { requestBody: requestBodyOf(published, body, shared) }),
    responses: { ...successOf(published, shared), ...refusals(published.problems.keys()) },
  };
}

/** The destination defines the request and the response. */
function callsOf({ headers, components }: SharedParts): Record<string, object> {
  const schema = {
    type: 'object',
    title: 'ProxyError',
    required: ['proxy_error'],
    properties: { proxy_error: components.refer(problem) },
  };
  const failures = Object.entries(proxyCalls.failures).map(([status, description]) => [
    status,
    {
      description,
      headers: headers.of(Number(status)),
      content: { 'application/json': { schema } },
    },
  ]);
  const calls = Object.entries(proxyCalls.summaries).map(([method, summary]) => [
    method.toLowerCase(),
    {
      operationId: `${method.toLowerCase()}ThroughProxy`,
      tags: [proxyCalls.tag],
      summary,
      description: proxyCalls.description,
      parameters: ['ProxyKey', 'ProxyUrl', 'TraceId'].map((name) => ({
        $ref: `#/components/parameters/${name}`,
      })),
      ...(proxyCalls.methodsWithBody.includes(method) && {
        requestBody: { description: proxyCalls.body, content: { '*/*': { schema: {} } } },
      }),
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
  { id, summary, params = {}, replies, problems = [] }: OpenOperation,
  { headers }: SharedParts,
): object {
  const parameters = Object.entries(params).map(([name, description]) => ({
    name,
    in: 'path',
    required: true,
    description,
    schema: { type: 'string' },
  }));
  const shown = Object.entries(replies).map(([status, content]) => [
    status,
    {
      description: descriptions[Number(status)] ?? 'Not at the moment',
      headers: headers.of(Number(status) === 200 ? 200 : 500),
      ...(content && { content: { [content.mediaType]: { schema: content.schema } } }),
    },
  ]);
  const refused = byStatus([...openProblems, ...problems]);
  return {
    operationId: id,
    tags: [openTag],
    summary,
    description: 'Needs no key.',
    security: [],
    'x-problems': [...refused.values()].flat(),
    ...(parameters.length > 0 && { parameters }),
    responses: { ...Object.fromEntries(shown), ...refusals(refused.keys()) },
  };
}

function requestBodyOf(
  { operation, isStream }: PublishedOperation,
  body: TSchema,
  { components }: SharedParts,
): object {
  const { mediaType = 'application/json', otherMediaType, example } = operation;
  const schema = components.refer(body);
  const given = example.body;
  const content = isStream
    ? linesOf(schema, given)
    : { schema, ...(given !== undefined && { example: given }) };
  const types = [mediaType, ...(otherMediaType === undefined ? [] : [otherMediaType])];
  return {
    required: operation.bodyMayBeEmpty !== true,
    description: isStream
      ? `Lines of JSON, each of at most ${bytes} bytes, and any number of them.`
      : `JSON in UTF-8 of at most ${bytes} bytes.`,
    content: Object.fromEntries(types.map((type) => [type, content])),
  };
}

/** Newline-delimited JSON is a string; its content schema describes a line. */
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
  { operation, isStream }: PublishedOperation,
  { components, headers }: SharedParts,
): object {
  const { status, body, mediaType = 'application/json' } = operation.reply;
  const isTagged = operation.tagged && operation.method !== 'DELETE';
  const example = examples[operation.id];
  const content = (schema: Schema) =>
    isStream ? linesOf(schema, example) : { schema, ...(example !== undefined && { example }) };
  return {
    [status]: {
      description: descriptions[status] ?? 'Done',
      headers: { ...headers.of(status), ...(isTagged && headers.etag) },
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
function problemResponses(
  operations: readonly PublishedOperation[],
  headers: HeaderComponents,
): object {
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
