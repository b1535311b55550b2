/** Shapes of what is said about access: permissions, templates and explanations. */
import Type from 'typebox';
import { accessRules } from './application.ts';
import { nullable, strict, text, uuid } from './shared.ts';

const kind = Type.Enum(['public', 'private', 'management']);

export const permissionQuery = Type.Object({ application_type: Type.Optional(kind) }, strict);

export const permissionList = Type.Array(
  Type.Object(
    { type: text, description: text, application_types: Type.Array(kind) },
    { title: 'Permission' },
  ),
);

export const applicationTemplate = Type.Object(
  {
    id: uuid,
    name: text,
    description: text,
    application_type: kind,
    template_type: text,
    is_starter: Type.Boolean(),
    rules: accessRules,
    permissions: Type.Array(text),
  },
  { title: 'ApplicationTemplate' },
);

export const accessQuestion = Type.Object(
  {
    application_id: nullable(text),
    key_id: nullable(text),
    permission: text,
    token_id: nullable(text),
    container: nullable(text),
  },
  { ...strict, title: 'AccessQuestion' },
);

const rule = accessRules.items;

export const accessExplanation = Type.Object(
  {
    allowed: Type.Boolean(),
    decided_by: Type.Enum(['rule', 'permission', 'nothing']),
    permission: text,
    application: Type.Object({ id: uuid, name: text, type: kind }),
    session: Type.Optional(Type.Object({ id: uuid })),
    token: Type.Optional(Type.Object({ id: text, type: text })),
    container: Type.Optional(text),
    rule: Type.Optional(rule),
    transform: Type.Optional(Type.Enum(['redact', 'mask', 'reveal'])),
    shown: Type.Enum(['plaintext', 'masked', 'nothing']),
    reason: text,
    rules: Type.Array(
      Type.Object(
        {
          ...rule.properties,
          verdict: Type.Enum([
            'decides',
            'other_permission',
            'other_tokens',
            'not_reached',
            'void',
          ]),
        },
        { title: 'ExplainedRule' },
      ),
    ),
  },
  {
    title: 'AccessExplanation',
    description: 'What a key may do, and which rule decides it. No data of the token is shown.',
  },
);
