/** Shapes of reactors and of what calls of them give and take. */
import Type from 'typebox';
import {
  anyJson,
  line,
  nullable,
  offsetPage,
  pageQuery,
  strict,
  text,
  timestamp,
  uuid,
} from './shared.ts';

const reactorName = line({ minLength: 1, maxLength: 200 });
const entries = Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()]));

const optional = {
  configuration: nullable(entries),
  application: nullable(Type.Object({ id: text }, { ...strict, title: 'ReactorApplication' })),
  /** What it may hold depends on its image; `src/rules/code-runtime.ts` reads it. */
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
    configuration: entries,
    application: Type.Optional(Type.Object({ id: uuid }, { title: 'LinkedApplication' })),
    runtime: Type.Object(
      {
        image: text,
        async: Type.Optional(Type.Boolean()),
        dependencies: Type.Optional(Type.Record(Type.String(), Type.String())),
        resolutions: Type.Optional(Type.Record(Type.String(), Type.String())),
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

export const reactorQuery = Type.Object(
  {
    id: Type.Optional(Type.Array(text, { maxItems: 100 })),
    name: Type.Optional(Type.String({ maxLength: 200 })),
    ...pageQuery,
  },
  strict,
);
