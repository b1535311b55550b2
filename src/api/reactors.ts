/** Reactors: code of tenants, calls of it, and what came of them. */
import Type from 'typebox';
import { keepingVersions } from '../reactors/calls/code-versions.ts';
import { callReactor, type ReactorCalling } from '../reactors/calls/react.ts';
import { readReactorLogs, readReactorVersions, readResult } from '../reactors/calls/read-result.ts';
import { invoking } from '../reactors/calls/run-caller.ts';
import { formulasRemoved, type ReactorWriting, reactorResource } from '../reactors/resource.ts';
import { codeLengthMax } from '../reactors/sandbox/limits.ts';
import { create, list, patch, read, remove, replace } from '../rules/stored-resource.ts';
import { idOf, operation, type Resource } from './declaration/operation.ts';
import { attribute, documented, object, shownAs } from './declaration/shape.ts';
import {
  anyJson,
  byId,
  cursor,
  cursorPage,
  filters,
  name,
  nullable,
  offsetPage,
  onlyNull,
  pageQuery,
  pathId,
  shared,
  strict,
  text,
  textMap,
  textOrNullMap,
  timestamp,
  uuid,
} from './shapes.ts';

const { id, tenant_id, created_by, created_at, modified_by, modified_at } = shared;

/** JSON that is an object, as is checked behind the schema. */
const anyObject = documented(Type.Optional(anyJson), { type: ['object', 'null'] });

const code = attribute(
  documented(text, { minLength: 1, maxLength: codeLengthMax }),
  'JavaScript that exports a function.',
);

const optional = {
  configuration: attribute(nullable(textOrNullMap), 'Texts by name that the code gets.'),
  application: attribute(
    nullable(
      object(
        { id: attribute(text, 'The id of the application.') },
        { ...strict, title: 'ReactorApplication' },
      ),
    ),
    'With whose rights `bt` in the code acts.',
  ),
  /** Its members depend on the image; `src/reactors/code/code-runtime.ts` reads it. */
  runtime: attribute(anyObject, 'How the code is called, and what it can use.'),
  allowed_hosts: attribute(
    nullable(Type.Array(text)),
    'Hosts that the code may call, without ports; `*` stands for any text. All unless given.',
  ),
  formula: attribute(shownAs(Type.Optional(anyJson), onlyNull), 'Removed; use `code`.'),
};

const reactorRequest = object({ name, code, ...optional }, { ...strict, title: 'ReactorRequest' });

/** Without null where a reactor cannot be without it. */
const reactorPatch = object(
  { name: Type.Optional(name), code: Type.Optional(code), ...optional },
  { ...strict, title: 'ReactorPatch' },
);

const withoutEffect = 'Accepted, without effect.';

const runtime = object(
  {
    image: attribute(text, '`node-bt` or `node22`.'),
    async: attribute(Type.Optional(Type.Boolean()), 'True when every call is asynchronous.'),
    dependencies: attribute(
      Type.Optional(textMap),
      'Modules that the code needs, with their versions.',
    ),
    resolutions: attribute(Type.Optional(textMap), 'Versions of what these modules need.'),
    timeout: attribute(Type.Optional(Type.Integer()), 'How many seconds the code has.'),
    warm_concurrency: attribute(Type.Optional(Type.Integer()), withoutEffect),
    resources: attribute(Type.Optional(text), withoutEffect),
    permissions: attribute(Type.Optional(Type.Array(text)), 'What `bt` in the code may do.'),
  },
  { title: 'ReactorRuntime' },
);

const reactor = object(
  {
    id,
    tenant_id,
    name: shared.name,
    code: attribute(text, code),
    configuration: attribute(textOrNullMap, optional.configuration),
    application: attribute(
      Type.Optional(
        object(
          { id: attribute(uuid, 'The id of the application.') },
          { title: 'LinkedApplication' },
        ),
      ),
      optional.application,
    ),
    runtime: attribute(runtime, optional.runtime),
    allowed_hosts: attribute(Type.Optional(Type.Array(text)), optional.allowed_hosts),
    state: attribute(text, '`active` once it can be used.'),
    created_by,
    created_at,
    modified_by,
    modified_at,
  },
  {
    title: 'Reactor',
    description:
      'Code of yours that runs in the vault. The values of its configuration are null for keys without ' +
      'reactor:update.',
  },
);

/** The code gets this as `args`, or as a whole, depending on the image of the reactor. */
const reactRequest = object(
  { args: attribute(anyObject, 'What the code gets as `args`, with expressions in its texts.') },
  { additionalProperties: true, title: 'ReactRequest' },
);

const returned = Type.Optional(anyJson);

const reactResponse = object(
  {
    tokens: attribute(returned, 'What the code returned as `tokenize`, as tokens.'),
    raw: attribute(returned, 'What the code returned as `raw`.'),
    body: attribute(returned, 'What the code returned as `body`.'),
    headers: attribute(returned, 'What the code returned as `headers`.'),
  },
  { title: 'ReactResponse' },
);

const asyncReactResponse = object(
  { asyncReactorRequestId: attribute(uuid, 'By which the result is asked for.') },
  { title: 'AsyncReactResponse' },
);

const byRequestId = object({
  id: pathId,
  requestId: attribute(text, 'The id of the asynchronous call.'),
});

const reactorLogLine = object(
  {
    level: attribute(text, '`debug`, `info`, `warn` or `error`.'),
    at: attribute(timestamp, 'When it happened.'),
    text: attribute(text, 'What was written.'),
  },
  { title: 'ReactorLogLine' },
);

const reactorLog = object(
  {
    request_id: attribute(uuid, 'The id of the call.'),
    invocation_type: attribute(text, '`sync` or `async`.'),
    outcome: attribute(text, '`completed` or `failed`.'),
    trace_id: attribute(text, 'The trace id of the call.'),
    created_at,
    lines: attribute(Type.Array(reactorLogLine), 'What the code wrote, in order.'),
  },
  { title: 'ReactorLog', description: 'What the code wrote to its log in one call.' },
);

const reactorVersion = object(
  {
    id: attribute(uuid, 'Identifies it.'),
    code: attribute(text, 'The code that the reactor had.'),
    replaced_by: attribute(uuid, 'The application that replaced it.'),
    replaced_at: attribute(timestamp, 'When it was replaced.'),
  },
  { title: 'ReactorVersion', description: 'Code that a reactor had before.' },
);

const reactorLogsQuery = object(
  { size: pageQuery.size, start: attribute(pageQuery.start, cursor) },
  strict,
);

const exampleId = idOf(7);
const request = 'ef3a1c2e-8b4d-4c6a-9e2f-0d1b2c3a4e5f';
const exampleCode =
  'module.exports = async function (req) { return { raw: { last4: req.args.last4 } } }';

/** Problems that code raises. */
const raised = [
  'reactor_bad_request',
  'reactor_unauthenticated',
  'reactor_payment_required',
  'reactor_forbidden',
  'reactor_unprocessable',
  'reactor_rate_limited',
  'reactor_failed',
  'reactor_unavailable',
] as const;

export const reactors: Resource<Omit<ReactorWriting, 'keepVersion'> & ReactorCalling> = {
  tag: 'Reactors',
  description:
    'A reactor is code of yours that runs in the vault, in a sandbox, with values in the place of references to ' +
    'tokens.',
  operations: (tools) => {
    const stored = reactorResource({ ...tools, keepVersion: keepingVersions(tools) });
    return [
      operation({
        id: 'createReactor',
        method: 'POST',
        path: '/reactors',
        summary: 'Create a reactor',
        description: 'If the code cannot run, the vault responds with 422.',
        permission: 'reactor:create',
        tagged: true,
        body: reactorRequest,
        reply: { status: 201, body: reactor },
        problems: ['unprocessable'],
        example: {
          body: { name: 'Last four', code: exampleCode, configuration: { KEY: 'sk_test' } },
          reply: { id: exampleId, name: 'Last four', state: 'active' },
        },
        // They are counted.
        serialKey: ({ caller }) => `${caller.tenant.id} reactors`,
        handle: ({ caller, body }) => create(stored, caller, body),
      }),
      operation({
        id: 'listReactors',
        method: 'GET',
        path: '/reactors',
        summary: 'List reactors, newest first',
        permission: 'reactor:read',
        query: object({ id: filters.ids, name: filters.name, ...pageQuery }, strict),
        reply: { status: 200, body: offsetPage(reactor) },
        example: {
          query: { name: 'Last*' },
          reply: { pagination: { total_items: 1 }, data: [{ id: exampleId }] },
        },
        handle: ({ caller, query }) => list(stored, caller, query),
      }),
      operation({
        id: 'getReactor',
        method: 'GET',
        path: '/reactors/:id',
        summary: 'Read a reactor',
        permission: 'reactor:read',
        tagged: true,
        params: byId,
        reply: { status: 200, body: reactor },
        example: { params: { id: exampleId }, reply: { id: exampleId, name: 'Last four' } },
        handle: ({ caller, params }) => read(stored, caller, params.id),
      }),
      operation({
        id: 'react',
        method: 'POST',
        path: '/reactors/:id/react',
        summary: 'Call a reactor',
        description:
          'Expressions in the arguments are replaced by values. The code may also respond with a status, headers and ' +
          'a body of its own.',
        ...invoking,
        params: byId,
        body: reactRequest,
        bodyMayBeEmpty: true,
        reply: { status: 200, body: reactResponse },
        problems: raised,
        example: {
          params: { id: exampleId },
          body: { args: { last4: "{{ order-4711-card | json: '$.number' | last4 }}" } },
          reply: { raw: { last4: '4242' } },
        },
        handle: ({ caller, params, body }) =>
          callReactor(tools, caller, { id: params.id, body, kind: 'sync' }),
      }),
      operation({
        id: 'reactAsync',
        method: 'POST',
        path: '/reactors/:id/react-async',
        summary: 'Call a reactor, and read its result later',
        ...invoking,
        params: byId,
        body: reactRequest,
        bodyMayBeEmpty: true,
        reply: { status: 202, body: asyncReactResponse },
        example: {
          params: { id: exampleId },
          body: { args: { last4: '4242' } },
          reply: { asyncReactorRequestId: request },
        },
        handle: ({ caller, params, body }) =>
          callReactor(tools, caller, { id: params.id, body, kind: 'async' }),
      }),
      operation({
        id: 'getReactorResult',
        method: 'GET',
        path: '/reactors/:id/results/:requestId',
        summary: 'Read the result of an asynchronous call',
        description:
          '404 until the result is there, and again after 24 hours; then the response of the call, or the error that ' +
          'its code raised. Only the application or session that made the call reads it.',
        ...invoking,
        params: byRequestId,
        reply: { status: 200, body: reactResponse },
        problems: raised,
        example: { params: { id: exampleId, requestId: request }, status: 404 },
        handle: ({ caller, params }) => readResult(tools, caller, params),
      }),
      operation({
        id: 'listReactorLogs',
        method: 'GET',
        path: '/reactors/:id/logs',
        summary: 'Read what the code of a reactor logged, newest call first',
        description:
          'Lines can contain values if the code writes them. They are stored for 24 hours.',
        permission: 'reactor:read',
        params: byId,
        query: reactorLogsQuery,
        reply: { status: 200, body: cursorPage(reactorLog) },
        example: { params: { id: exampleId }, reply: { data: [] } },
        handle: ({ caller, params, query }) =>
          readReactorLogs(tools, caller, { id: params.id, query }),
      }),
      operation({
        id: 'listReactorVersions',
        method: 'GET',
        path: '/reactors/:id/versions',
        summary: 'Read earlier versions of the code of a reactor, newest first',
        description:
          'Whenever the code changes, the code before is kept for 90 days, as long as the tenant has room for it ' +
          '(`reactor_storage_limit`). To go back, update the reactor with it.',
        permission: 'reactor:read',
        params: byId,
        query: reactorLogsQuery,
        reply: { status: 200, body: cursorPage(reactorVersion) },
        example: { params: { id: exampleId }, reply: { data: [] } },
        handle: ({ caller, params, query }) =>
          readReactorVersions(tools, caller, { id: params.id, query }),
      }),
      operation({
        id: 'replaceReactor',
        method: 'PUT',
        path: '/reactors/:id',
        summary: 'Replace a reactor',
        description: 'Attributes that are absent take their defaults.',
        permission: 'reactor:update',
        tagged: true,
        params: byId,
        body: reactorRequest,
        reply: { status: 200, body: reactor },
        problems: ['unprocessable'],
        example: {
          params: { id: exampleId },
          body: { name: 'Last four digits', code: exampleCode },
          reply: { id: exampleId, name: 'Last four digits' },
        },
        serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
        handle: ({ caller, params, body }) =>
          replace(stored, caller, { id: params.id, request: body }),
      }),
      operation({
        id: 'updateReactor',
        method: 'PATCH',
        path: '/reactors/:id',
        summary: 'Update a reactor by JSON merge patch',
        permission: 'reactor:update',
        tagged: true,
        params: byId,
        body: reactorPatch,
        mediaType: 'application/merge-patch+json',
        reply: { status: 204 },
        problems: ['unprocessable'],
        example: { params: { id: exampleId }, body: { allowed_hosts: ['api.example.com'] } },
        serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
        handle: ({ caller, params, body }) => patch(stored, caller, { id: params.id, patch: body }),
      }),
      operation({
        id: 'deleteReactor',
        method: 'DELETE',
        path: '/reactors/:id',
        summary: 'Delete a reactor, with its waiting calls, their results and logs',
        permission: 'reactor:delete',
        tagged: true,
        params: byId,
        reply: { status: 204 },
        example: { params: { id: exampleId } },
        handle: ({ caller, params }) => remove(stored, caller, params.id),
      }),
      ...formulas,
    ];
  },
};

const removed = {
  summary: 'Removed; give the code to a reactor',
  reply: { status: 204 },
  problems: ['gone'],
  handle: () => formulasRemoved(),
} as const;
const example = { status: 410 };
const body = { name: 'f' };
const params = { id: exampleId };

/** Reactors had formulas before they had code. */
const formulas = [
  operation({
    id: 'listReactorFormulas',
    method: 'GET',
    path: '/reactor-formulas',
    permission: 'reactor:read',
    ...removed,
    example,
  }),
  operation({
    id: 'createReactorFormula',
    method: 'POST',
    path: '/reactor-formulas',
    permission: 'reactor:create',
    body: anyJson,
    ...removed,
    example: { ...example, body },
  }),
  operation({
    id: 'getReactorFormula',
    method: 'GET',
    path: '/reactor-formulas/:id',
    permission: 'reactor:read',
    params: byId,
    ...removed,
    example: { ...example, params },
  }),
  operation({
    id: 'replaceReactorFormula',
    method: 'PUT',
    path: '/reactor-formulas/:id',
    permission: 'reactor:update',
    params: byId,
    body: anyJson,
    ...removed,
    example: { ...example, params, body },
  }),
  operation({
    id: 'deleteReactorFormula',
    method: 'DELETE',
    path: '/reactor-formulas/:id',
    permission: 'reactor:delete',
    params: byId,
    ...removed,
    example: { ...example, params },
  }),
];
