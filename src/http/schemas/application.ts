/** Shapes of applications, their access rules and their keys. */
import Type from 'typebox';
import { line, nullable, offsetPage, pageQuery, strict, text, timestamp, uuid } from './shared.ts';

const condition = Type.Object(
  {
    attribute: Type.Enum(['id', 'container']),
    operator: Type.Enum(['equals', 'starts_with']),
    value: text,
  },
  { ...strict, title: 'AccessCondition' },
);

const accessRule = Type.Object(
  {
    description: nullable(Type.String({ maxLength: 500 })),
    priority: Type.Integer(),
    container: nullable(text),
    conditions: nullable(Type.Array(condition)),
    permissions: Type.Array(text),
    transform: Type.Enum(['redact', 'mask', 'reveal']),
  },
  { ...strict, title: 'AccessRuleRequest' },
);

/** What a request may give: to an application, or to a session. */
export const accessRequest = {
  permissions: nullable(Type.Array(text)),
  rules: nullable(Type.Array(accessRule)),
};

export const accessRules = Type.Array(
  Type.Object({ ...accessRule.properties }, { title: 'AccessRule' }),
);

export const applicationName = line({ minLength: 1, maxLength: 200 });
const applicationType = Type.Enum(['public', 'private', 'management']);

export const applicationRequest = Type.Object(
  {
    name: applicationName,
    type: applicationType,
    ...accessRequest,
    create_key: nullable(Type.Boolean()),
  },
  { ...strict, title: 'ApplicationRequest' },
);

export const applicationUpdate = Type.Object(
  { name: applicationName, ...accessRequest },
  { ...strict, title: 'ApplicationUpdate' },
);

export const applicationKey = Type.Object(
  {
    id: uuid,
    tenant_id: uuid,
    application_id: uuid,
    key: Type.Optional(text),
    version: text,
    created_by: Type.Optional(uuid),
    created_at: timestamp,
    last_used_at: Type.Optional(timestamp),
  },
  {
    title: 'ApplicationKey',
    description: 'A key of an application. Only the response to its creation has the text, `key`.',
  },
);

export const application = Type.Object(
  {
    id: uuid,
    tenant_id: uuid,
    name: text,
    type: text,
    key: Type.Optional(text),
    keys: Type.Array(applicationKey),
    permissions: Type.Array(text),
    rules: accessRules,
    created_by: Type.Optional(uuid),
    created_at: timestamp,
    modified_by: Type.Optional(uuid),
    modified_at: Type.Optional(timestamp),
  },
  { title: 'Application' },
);

export const applicationPage = offsetPage(application);

export const applicationQuery = Type.Object(
  {
    id: Type.Optional(Type.Array(text, { maxItems: 100 })),
    type: Type.Optional(Type.Array(applicationType)),
    ...pageQuery,
  },
  strict,
);

export const keyQuery = Type.Object(
  {
    id: Type.Optional(Type.Array(text)),
    type: Type.Optional(Type.Array(applicationType)),
  },
  strict,
);

export const byKeyId = Type.Object({ id: text, keyId: text });
