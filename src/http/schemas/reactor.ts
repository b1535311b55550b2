/** Shapes of reactors and of what calls of them give and take. */
import Type from 'typebox';
import {
  anyJson,
  cursorPage,
  line,
  nullable,
  offsetPage,
  pageQuery,
  strict,
  text,
  textMap,
  textOrNullMap,
  timestamp,
  uuid,
} from './shared.ts';

const reactorName = line({ minLength: 1, maxLength: 200 });

const optional = {
  configuration: nullable(textOrNullMap),
  application: nullable(Type.Object({ id: text }, { ...strict, title: 'ReactorApplication' })),
  /** What it may hold depends on its image; `src/transforms/code-runtime.ts` reads it. */
  runtime: Type.Optional(anyJson),
  allowed_hosts: nullable(Type.Array(text)),
  formula: Type.Optional(anyJson),
};

export const reactorRequest = Type.Object(
  { name: reactorName, code: text, ...optional },
  { ...strict, title: 'ReactorRequest' },
);

/** Without null where a reactor cannot be without it. */
export const reactorPatch = Type.Object(
  { name: Type.Optional(reactorName), code: Type.Optional(text), ...optional },
  { ...strict, title: 'ReactorPatch' },
);

export const reactor = Type.Object(
  {
    id: uuid,
    tenant_id: uuid,
    name: text,
    code: text,
    configuration: textOrNullMap,
    application: Type.Optional(Type.Object({ id: uuid }, { title: 'LinkedApplication' })),
    runtime: Type.Object(
      {
        image: text,
        async: Type.Optional(Type.Boolean()),
        dependencies: Type.Optional(textMap),
        resolutions: Type.Optional(textMap),
        timeout: Type.Optional(Type.Integer()),
        warm_concurrency: Type.Optional(Type.Integer()),
        resources: Type.Optional(text),
        permissions: Type.Optional(Type.Array(text)),
      },
      { title: 'ReactorRuntime' },
    ),
    allowed_hosts: Type.Optional(Type.Array(text)),
    state: text,
    created_by: uuid,
    created_at: timestamp,
    modified_by: Type.Optional(uuid),
    modified_at: Type.Optional(timestamp),
  },
  {
    title: 'Reactor',
    description:
      'Code of yours that runs in the vault. The values of its configuration are null for keys without ' +
      'reactor:update.',
  },
);

export const reactorPage = offsetPage(reactor);

/** What the code gets under the name `args`, or as a whole; it depends on the image of the reactor. */
export const reactRequest = Type.Object(
  { args: Type.Optional(anyJson) },
  { additionalProperties: true, title: 'ReactRequest' },
);

export const reactResponse = Type.Object(
  {
    tokens: Type.Optional(anyJson),
    raw: Type.Optional(anyJson),
    body: Type.Optional(anyJson),
    headers: Type.Optional(anyJson),
  },
  { title: 'ReactResponse' },
);

export const asyncReactResponse = Type.Object(
  { asyncReactorRequestId: uuid },
  { title: 'AsyncReactResponse' },
);

export const byRequestId = Type.Object({ id: text, requestId: text });

const reactorLog = Type.Object(
  {
    request_id: uuid,
    invocation_type: text,
    outcome: text,
    trace_id: text,
    created_at: timestamp,
    lines: Type.Array(
      Type.Object({ level: text, at: timestamp, text }, { title: 'ReactorLogLine' }),
    ),
  },
  { title: 'ReactorLog', description: 'What the code wrote to its log in one call.' },
);

export const reactorLogs = cursorPage(reactorLog);

export const reactorLogsQuery = Type.Object(
  { size: pageQuery.size, start: pageQuery.start },
  strict,
);

export const reactorQuery = Type.Object(
  {
    id: Type.Optional(Type.Array(text, { maxItems: 100 })),
    name: Type.Optional(Type.String({ maxLength: 200 })),
    ...pageQuery,
  },
  strict,
);
