/** Proxies: where requests go, and what is done to them; and the calls of proxies. */
import Type, { type TSchema } from 'typebox';
import type { CallMethod } from '../http/proxy/methods.ts';
import { pathLengthMax, pathsMax } from '../proxies/addresses.ts';
import { proxyMethods, timeoutSecondsMax, timeoutSecondsMin } from '../proxies/definition.ts';
import { type ProxyWriting, proxyResource } from '../proxies/resource.ts';
import { create, list, patch, read, remove, replace } from '../rules/stored-resource.ts';
import { idOf, operation, type Resource } from './declaration/operation.ts';
import { attribute, documented, object, shownAs } from './declaration/shape.ts';
import {
  anyJson,
  byId,
  filters,
  name,
  nullable,
  offsetPage,
  onlyNull,
  pageQuery,
  shared,
  strict,
  text,
  textOrNullMap,
  uuid,
} from './shapes.ts';

const { id, tenant_id, created_by, created_at, modified_by, modified_at } = shared;

const destinationUrl = attribute(text, 'Where requests go; https.');

/** What a transform is depends on its type; `src/transforms` reads it. */
const transforms = Type.Array(anyJson);
const someTransforms = nullable(documented(transforms, { items: { type: 'object' } }));

const optional = {
  request_transform: attribute(
    Type.Optional(anyJson),
    'A transform of requests, where there is only one.',
  ),
  response_transform: attribute(
    Type.Optional(anyJson),
    'A transform of responses, where there is only one.',
  ),
  request_transforms: attribute(someTransforms, 'What is done to requests, in order.'),
  response_transforms: attribute(someTransforms, 'What is done to responses, in order.'),
  application: attribute(
    nullable(
      object(
        { id: attribute(text, 'The id of the application.') },
        { ...strict, title: 'ProxyApplication' },
      ),
    ),
    'The application whose rules apply to calls without an API key.',
  ),
  configuration: attribute(
    nullable(textOrNullMap),
    'Texts by name that expressions in requests can use.',
  ),
  require_auth: attribute(
    nullable(Type.Boolean()),
    'Whether callers need an API key besides the key of the proxy.',
  ),
  disable_detokenization: attribute(
    nullable(Type.Boolean()),
    'Whether references to tokens are left as they are.',
  ),
  allow_encrypted: attribute(
    nullable(Type.Boolean()),
    'Whether callers without an API key may send client-encrypted data, which is used with the rights of the ' +
      'application of the proxy.',
  ),
  timeout: attribute(
    nullable(
      documented(Type.Integer(), { minimum: timeoutSecondsMin, maximum: timeoutSecondsMax }),
    ),
    'How many seconds the destination has.',
  ),
  proxy_host: attribute(
    nullable(text),
    'A host name under which the proxy is reached without `/proxy`; the operator gave it to the tenant.',
  ),
  allowed_paths: attribute(
    nullable(
      documented(Type.Array(text), {
        minItems: 1,
        maxItems: pathsMax,
        // Visible characters of ASCII without #, ? and \.
        items: {
          type: 'string',
          maxLength: pathLengthMax,
          pattern: '^[/*][!"$->@-\\[\\]-~]*$',
        },
      }),
    ),
    'Paths that may be called, exact or with `*`; all unless given.',
  ),
  allowed_methods: attribute(
    nullable(
      documented(Type.Array(text), {
        minItems: 1,
        uniqueItems: true,
        items: { type: 'string', enum: proxyMethods },
      }),
    ),
    'Methods that may be used, in upper case; all unless given.',
  ),
  client_certificate: attribute(
    nullable(text),
    'A certificate that the destination asks for, in PEM.',
  ),
  client_key: attribute(nullable(text), 'Its private key, in PEM.'),
  request_reactor_id: attribute(
    shownAs(nullable(text), onlyNull),
    'Removed; use `request_transforms`.',
  ),
  response_reactor_id: attribute(
    shownAs(nullable(text), onlyNull),
    'Removed; use `response_transforms`.',
  ),
};

const proxyRequest = object(
  { name, destination_url: destinationUrl, ...optional },
  { ...strict, title: 'ProxyRequest' },
);

/** Without null where a proxy cannot be without it. */
const proxyPatch = object(
  { name: Type.Optional(name), destination_url: Type.Optional(destinationUrl), ...optional },
  { ...strict, title: 'ProxyPatch' },
);

const withoutValue = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

const clientCertificate = object(
  {
    subject: attribute(text, 'The common name of the certificate.'),
    expires_at: shared.expires_at,
  },
  { title: 'ClientCertificate' },
);

const proxy = object(
  {
    id,
    tenant_id,
    key: attribute(text, 'The key with which the proxy is called.'),
    name: shared.name,
    destination_url: destinationUrl,
    request_transform: optional.request_transform,
    response_transform: optional.response_transform,
    request_transforms: attribute(transforms, optional.request_transforms),
    response_transforms: attribute(transforms, optional.response_transforms),
    application_id: attribute(withoutValue(uuid), optional.application),
    configuration: attribute(textOrNullMap, optional.configuration),
    require_auth: attribute(Type.Boolean(), optional.require_auth),
    disable_detokenization: attribute(Type.Boolean(), optional.disable_detokenization),
    allow_encrypted: attribute(Type.Boolean(), optional.allow_encrypted),
    timeout: attribute(Type.Integer(), optional.timeout),
    proxy_host: attribute(withoutValue(text), optional.proxy_host),
    allowed_paths: attribute(Type.Optional(Type.Array(text)), optional.allowed_paths),
    allowed_methods: attribute(Type.Optional(Type.Array(text)), optional.allowed_methods),
    client_certificate: attribute(
      Type.Optional(clientCertificate),
      'The certificate that the destination gets, without its private key.',
    ),
    state: attribute(text, '`active` once it can be used.'),
    created_by,
    created_at,
    modified_by,
    modified_at,
  },
  {
    title: 'Proxy',
    description:
      'A proxy. The values of its configuration are null for keys without proxy:update. Its key is for ' +
      'those who call it.',
  },
);

const exampleId = idOf(6);
const destination_url = 'https://api.example.com/v1';

export const proxies: Resource<ProxyWriting> = {
  tag: 'Proxies',
  description:
    'A proxy sends requests to a destination of yours and writes values in the place of references to tokens, so ' +
    'that they never pass through your own servers.',
  operations: (tools) => {
    const stored = proxyResource(tools);
    return [
      operation({
        id: 'createProxy',
        method: 'POST',
        path: '/proxies',
        summary: 'Create a proxy',
        permission: 'proxy:create',
        tagged: true,
        body: proxyRequest,
        reply: { status: 201, body: proxy },
        problems: ['unprocessable'],
        example: {
          body: { name: 'Charge', destination_url, configuration: { API_KEY: 'sk_test' } },
          reply: {
            id: exampleId,
            name: 'Charge',
            destination_url,
            require_auth: true,
            state: 'active',
          },
        },
        // They are counted.
        serialKey: ({ caller }) => `${caller.tenant.id} proxies`,
        handle: ({ caller, body }) => create(stored, caller, body),
      }),
      operation({
        id: 'listProxies',
        method: 'GET',
        path: '/proxies',
        summary: 'List proxies, newest first',
        permission: 'proxy:read',
        query: object({ id: filters.ids, name: filters.name, ...pageQuery }, strict),
        reply: { status: 200, body: offsetPage(proxy) },
        example: {
          query: { name: 'Cha*' },
          reply: { pagination: { total_items: 1 }, data: [{ id: exampleId }] },
        },
        handle: ({ caller, query }) => list(stored, caller, query),
      }),
      operation({
        id: 'getProxy',
        method: 'GET',
        path: '/proxies/:id',
        summary: 'Read a proxy',
        permission: 'proxy:read',
        tagged: true,
        params: byId,
        reply: { status: 200, body: proxy },
        example: { params: { id: exampleId }, reply: { id: exampleId, name: 'Charge' } },
        handle: ({ caller, params }) => read(stored, caller, params.id),
      }),
      operation({
        id: 'replaceProxy',
        method: 'PUT',
        path: '/proxies/:id',
        summary: 'Replace a proxy; its key stays',
        description: 'Attributes that are absent take their defaults.',
        permission: 'proxy:update',
        tagged: true,
        params: byId,
        body: proxyRequest,
        reply: { status: 200, body: proxy },
        example: {
          params: { id: exampleId },
          body: { name: 'Charge cards', destination_url },
          reply: { id: exampleId, name: 'Charge cards' },
        },
        serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
        handle: ({ caller, params, body }) =>
          replace(stored, caller, { id: params.id, request: body }),
      }),
      operation({
        id: 'updateProxy',
        method: 'PATCH',
        path: '/proxies/:id',
        summary: 'Update a proxy by JSON merge patch',
        permission: 'proxy:update',
        tagged: true,
        params: byId,
        body: proxyPatch,
        mediaType: 'application/merge-patch+json',
        reply: { status: 204 },
        example: { params: { id: exampleId }, body: { timeout: 60 } },
        serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
        handle: ({ caller, params, body }) => patch(stored, caller, { id: params.id, patch: body }),
      }),
      operation({
        id: 'deleteProxy',
        method: 'DELETE',
        path: '/proxies/:id',
        summary: 'Delete a proxy',
        permission: 'proxy:delete',
        tagged: true,
        params: byId,
        reply: { status: 204 },
        example: { params: { id: exampleId } },
        handle: ({ caller, params }) => remove(stored, caller, params.id),
      }),
    ];
  },
};

const sending = (method: string) => `Send a ${method} request to the destination of a proxy`;
const withValues = 'with values of tokens where it refers to them';

/** Calls of proxies; `http/proxy` handles them, because the destination defines the request and the response. */
export const proxyCalls = {
  tag: proxies.tag,
  description:
    'This also covers every path below it. Needs the permission `proxy:invoke`, unless the proxy asks for no key.',
  summaries: {
    GET: sending('GET'),
    HEAD: sending('HEAD'),
    POST: `${sending('POST')}, ${withValues}`,
    PUT: `${sending('PUT')}, ${withValues}`,
    PATCH: `${sending('PATCH')}, ${withValues}`,
    DELETE: sending('DELETE'),
    OPTIONS:
      'Send an OPTIONS request to the destination of a proxy, unless it is a preflight of a browser',
  } satisfies Record<CallMethod, string>,
  methodsWithBody: ['POST', 'PUT', 'PATCH'],
  body: 'Any body. Expressions in it, such as `{{ token: 4f8d… }}`, are replaced by the values of tokens.',
  /** Of failures of the vault itself; any other status is the destination's. */
  failures: {
    400: 'The call, an expression or a reference in it is not valid',
    401: 'The API key is missing or not valid',
    403: 'The caller, the proxy or the tenant does not allow it',
    404: 'There is no such proxy',
    408: 'The destination took too long',
    413: 'The body is too large for the expressions in it',
    429: 'Too many requests',
    502: 'The destination was not reached, or did not respond as it should',
  },
};
