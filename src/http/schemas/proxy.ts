/** Shapes of proxies. */
import Type, { type TSchema } from 'typebox';
import {
  anyJson,
  line,
  nullable,
  offsetPage,
  pageQuery,
  strict,
  text,
  textOrNullMap,
  timestamp,
  uuid,
} from './shared.ts';

const proxyName = line({ minLength: 1, maxLength: 200 });
/** What a transform is depends on its type; `src/transforms` reads it. */
const transforms = Type.Array(anyJson);

const optional = {
  request_transform: Type.Optional(anyJson),
  response_transform: Type.Optional(anyJson),
  request_transforms: nullable(transforms),
  response_transforms: nullable(transforms),
  application: nullable(Type.Object({ id: text }, { ...strict, title: 'ProxyApplication' })),
  configuration: nullable(textOrNullMap),
  require_auth: nullable(Type.Boolean()),
  disable_detokenization: nullable(Type.Boolean()),
  allow_encrypted: nullable(Type.Boolean()),
  timeout: nullable(Type.Integer()),
  proxy_host: nullable(text),
  allowed_paths: nullable(Type.Array(text)),
  allowed_methods: nullable(Type.Array(text)),
  client_certificate: nullable(text),
  client_key: nullable(text),
  request_reactor_id: nullable(text),
  response_reactor_id: nullable(text),
};

export const proxyRequest = Type.Object(
  { name: proxyName, destination_url: text, ...optional },
  { ...strict, title: 'ProxyRequest' },
);

/** Without null where a proxy cannot be without it. */
export const proxyPatch = Type.Object(
  { name: Type.Optional(proxyName), destination_url: Type.Optional(text), ...optional },
  { ...strict, title: 'ProxyPatch' },
);

const withoutValue = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const proxy = Type.Object(
  {
    id: uuid,
    tenant_id: uuid,
    key: text,
    name: text,
    destination_url: text,
    request_transform: Type.Optional(anyJson),
    response_transform: Type.Optional(anyJson),
    request_transforms: transforms,
    response_transforms: transforms,
    application_id: withoutValue(uuid),
    configuration: textOrNullMap,
    require_auth: Type.Boolean(),
    disable_detokenization: Type.Boolean(),
    allow_encrypted: Type.Boolean(),
    timeout: Type.Integer(),
    proxy_host: withoutValue(text),
    allowed_paths: Type.Optional(Type.Array(text)),
    allowed_methods: Type.Optional(Type.Array(text)),
    client_certificate: Type.Optional(
      Type.Object({ subject: text, expires_at: timestamp }, { title: 'ClientCertificate' }),
    ),
    state: text,
    created_by: uuid,
    created_at: timestamp,
    modified_by: Type.Optional(uuid),
    modified_at: Type.Optional(timestamp),
  },
  {
    title: 'Proxy',
    description:
      'A proxy. The values of its configuration are null for keys without proxy:update. Its key is for ' +
      'those who call it.',
  },
);

export const proxyPage = offsetPage(proxy);

export const proxyQuery = Type.Object(
  {
    id: Type.Optional(Type.Array(text, { maxItems: 100 })),
    name: Type.Optional(Type.String({ maxLength: 200 })),
    ...pageQuery,
  },
  strict,
);
