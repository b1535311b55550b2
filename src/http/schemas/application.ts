/** Shapes of applications and their access rules. */
import Type from 'typebox';
import { nullable, strict, text, timestamp, uuid } from './common.ts';

const condition = Type.Object(
  {
    attribute: Type.Enum(['id', 'container']),
    operator: Type.Enum(['equals', 'starts_with']),
    value: text,
  },
  strict,
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
  strict,
);

export const applicationRequest = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 200, pattern: '^[^\\r\\n]*$' }),
    type: Type.Enum(['public', 'private', 'management']),
    permissions: nullable(Type.Array(text)),
    rules: nullable(Type.Array(accessRule)),
    create_key: nullable(Type.Boolean()),
  },
  strict,
);

const applicationKey = Type.Object({
  id: uuid,
  key: Type.Optional(text),
  version: text,
  created_by: Type.Optional(uuid),
  created_at: timestamp,
});

export const application = Type.Object({
  id: uuid,
  tenant_id: uuid,
  name: text,
  type: text,
  key: Type.Optional(text),
  keys: Type.Array(applicationKey),
  permissions: Type.Array(text),
  rules: Type.Array(Type.Object({ ...accessRule.properties })),
  created_by: Type.Optional(uuid),
  created_at: timestamp,
  modified_by: Type.Optional(uuid),
  modified_at: Type.Optional(timestamp),
});
