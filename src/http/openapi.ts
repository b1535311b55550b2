/** The OpenAPI 3.1 document, made from the declared routes so that it cannot say anything else. */
import type { TSchema } from 'typebox';
import { errorKinds } from '../lib/errors.ts';
import type { OpenRoute, Route } from './protocol/route.ts';
import { callMethods, callPath } from './proxy/methods.ts';

export interface OpenapiOptions {
  readonly routes: readonly Route[];
  readonly openRoutes: readonly OpenRoute[];
  /** The service's own header prefix, such as `SVC`. */
  readonly headerPrefix: string;
  readonly version: string;
}

export function openapiOf(options: OpenapiOptions): object {
  const paths = new Map<string, Record<string, object>>();
  const add = (path: string, method: string, operation: object) => {
    const template = templateOf(path);
    paths.set(template, { ...paths.get(template), [method.toLowerCase()]: operation });
  };
  for (const route of options.routes) add(route.path, route.method, operationOf(route));
  for (const [method, summary] of Object.entries(callMethods)) {
    add(callPath, method, callOf(summary));
  }
  for (const { path, summary } of options.openRoutes) {
    add(path, 'get', { summary, security: [], responses: { default: { description: summary } } });
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Strongroom',
      version: options.version,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    security: [{ key: [] }],
    components: {
      securitySchemes: {
        key: { type: 'apiKey', in: 'header', name: `${options.headerPrefix}-API-KEY` },
      },
      schemas: { Problem: problem },
      responses: {
        Problem: {
          description: 'Refused or failed',
          content: {
            'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
          },
        },
      },
    },
    paths: Object.fromEntries(paths),
  };
}

/** RFC 9457, with the validation errors by attribute. */
const problem = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail'],
  properties: {
    type: {
      type: 'string',
      enum: Object.keys(errorKinds).map((code) => `urn:strongroom:problem:${code}`),
    },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    errors: { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
  },
};

function operationOf(route: Route): object {
  const { summary, permission, body, mediaType = 'application/json', reply } = route;
  return {
    summary,
    description:
      permission === 'any key'
        ? 'Open to any valid key.'
        : `Needs the permission \`${permission}\`.`,
    parameters: [...parametersOf(route.params, 'path'), ...parametersOf(route.query, 'query')],
    ...(body && { requestBody: { required: true, content: { [mediaType]: { schema: body } } } }),
    responses: {
      [reply.status]: {
        description: 'Done',
        ...(reply.body && {
          content: { [reply.mediaType ?? 'application/json']: { schema: reply.body } },
        }),
      },
      default: { $ref: '#/components/responses/Problem' },
    },
  };
}

/** What is sent and what is received are the destination's business. */
function callOf(summary: string): object {
  return {
    summary,
    description:
      'Also for every path below it. Needs the permission `proxy:invoke`, unless the proxy asks for no key.',
    responses: { default: { description: "The destination's response, or a `proxy_error`" } },
  };
}

function parametersOf(schema: TSchema | undefined, place: 'path' | 'query'): object[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    readonly properties?: Readonly<Record<string, object>>;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, parameter]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema: parameter,
  }));
}

/** `/tokens/:id` as `/tokens/{id}`. */
function templateOf(path: string): string {
  return path.replace(/:(\w+)/g, '{$1}');
}
