/** Access: permissions and rules as requests and responses have them, and the operations that explain them. */
import Type, { type TSchema } from 'typebox';
import { listPermissions } from '../access/applications/list-permissions.ts';
import { listTemplates, readTemplate } from '../access/applications/templates.ts';
import {
  conditionsMax,
  conditionValueLengthMax,
  permissionsMax,
  rulesMax,
} from '../rules/access-rules.ts';
import { type PermissionRow, permissions } from '../rules/permissions.ts';
import { type Explaining, explainAccess } from '../tokens/explain-access.ts';
import { type Operation, operation } from './declaration/operation.ts';
import { attribute, documented, object } from './declaration/shape.ts';
import { byId, nullable, shared, strict, text } from './shapes.ts';
import { container, containerLimits, token } from './token-shapes.ts';

const { id, name } = shared;
const permissionRows = Object.entries<PermissionRow>(permissions);

/** The names of permissions, of which a request may have so many. */
const named = (rows: readonly [string, PermissionRow][]) => ({
  maxItems: permissionsMax,
  items: { type: 'string', enum: rows.map(([name]) => name) },
});

const condition = object(
  {
    attribute: attribute(Type.Enum(['id', 'container']), 'What is compared.'),
    operator: attribute(Type.Enum(['equals', 'starts_with']), 'How it is compared.'),
    value: attribute(
      documented(text, { minLength: 1, maxLength: conditionValueLengthMax }),
      'What it is compared with.',
    ),
  },
  { ...strict, title: 'AccessCondition' },
);

/** @param limit adds a limit of requests; responses show none. */
const ruleAttributes = (limit: <T extends TSchema>(schema: T, limits: object) => T) => ({
  description: attribute(nullable(Type.String({ maxLength: 500 })), 'For people.'),
  priority: attribute(
    limit(Type.Integer(), { minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    'Rules are tried from the lowest number on; the first that matches decides.',
  ),
  container: attribute(
    nullable(limit(text, containerLimits)),
    'A path such as `/pci/high/`; all containers below it are included.',
  ),
  conditions: attribute(
    nullable(limit(Type.Array(condition), { minItems: 1, maxItems: conditionsMax })),
    'All of them must hold for the rule to match.',
  ),
  permissions: attribute(
    limit(Type.Array(text), {
      minItems: 1,
      ...named(permissionRows.filter(([, row]) => row.token)),
    }),
    'What is allowed, such as `token:read`.',
  ),
  transform: attribute(
    Type.Enum(['redact', 'mask', 'reveal']),
    'How data is shown: `redact` not at all, `mask` as the mask says, `reveal` as it is.',
  ),
});

const accessRuleRequest = object(ruleAttributes(documented), {
  ...strict,
  title: 'AccessRuleRequest',
});

const rule = object(
  ruleAttributes((schema) => schema),
  { title: 'AccessRule' },
);

/** What an application or a session has. */
export const access = {
  permissions: attribute(Type.Array(text), rule.properties.permissions),
  rules: attribute(
    Type.Array(rule),
    'Access rules: what is allowed on which tokens, and how data is shown.',
  ),
};

/** The access that a request may give to an application or to a session. */
export const accessRequest = {
  permissions: attribute(
    nullable(documented(Type.Array(text), named(permissionRows))),
    access.permissions,
  ),
  rules: attribute(
    nullable(documented(Type.Array(accessRuleRequest), { maxItems: rulesMax })),
    access.rules,
  ),
};

export const applicationType = Type.Enum(['public', 'private', 'management']);
export const applicationTypeMeaning = '`public`, `private` or `management`.';

const permissionQuery = object(
  {
    application_type: attribute(
      Type.Optional(applicationType),
      'Only those that this type of application may hold.',
    ),
  },
  strict,
);

const permission = object(
  {
    type: attribute(text, 'Its name, such as `token:read`.'),
    description: attribute(text, 'What it allows, in words.'),
    application_types: attribute(
      Type.Array(applicationType),
      'The types of applications that may hold it.',
    ),
  },
  { title: 'Permission' },
);

const applicationTemplate = object(
  {
    id,
    name,
    description: attribute(text, 'For people.'),
    application_type: attribute(applicationType, 'The type of applications it is for.'),
    template_type: attribute(text, 'What the template is for.'),
    is_starter: attribute(Type.Boolean(), 'True for templates to begin with.'),
    rules: access.rules,
    permissions: access.permissions,
  },
  { title: 'ApplicationTemplate' },
);

const accessQuestion = object(
  {
    application_id: attribute(nullable(text), 'Whose access is explained.'),
    key_id: attribute(nullable(text), 'Whose access is explained, in the place of an application.'),
    permission: attribute(
      documented(text, { enum: permissionRows.map(([name]) => name) }),
      'The permission that is asked about.',
    ),
    token_id: attribute(nullable(text), 'The token that is asked about.'),
    container: attribute(
      nullable(container),
      'The container that is asked about, in the place of a token.',
    ),
    permissions: attribute(
      accessRequest.permissions,
      'With `rules`, what an update would give the application: the decision after it is explained.',
    ),
    rules: attribute(accessRequest.rules, 'The rules that an update would give the application.'),
  },
  { ...strict, title: 'AccessQuestion' },
);

const explainedRule = object(
  {
    ...rule.properties,
    verdict: attribute(
      Type.Enum(['decides', 'other_permission', 'other_tokens', 'not_reached', 'void']),
      'What became of the rule.',
    ),
  },
  { title: 'ExplainedRule' },
);

const accessExplanation = object(
  {
    allowed: attribute(Type.Boolean(), 'Whether it would be allowed.'),
    decided_by: attribute(
      Type.Enum(['rule', 'permission', 'nothing']),
      'Whether a rule, a permission or nothing decides.',
    ),
    permission: attribute(text, accessQuestion.properties.permission),
    application: attribute(
      object({ id, name, type: attribute(applicationType, applicationTypeMeaning) }),
      'The application whose access is explained.',
    ),
    session: attribute(Type.Optional(object({ id })), 'The session whose access is explained.'),
    token: attribute(
      Type.Optional(
        object({ id: token.properties.id, type: attribute(text, token.properties.type) }),
      ),
      accessQuestion.properties.token_id,
    ),
    container: attribute(
      Type.Optional(text),
      'The container that is asked about, or that of the token.',
    ),
    rule: attribute(Type.Optional(rule), 'The rule that decides.'),
    transform: attribute(
      Type.Optional(Type.Enum(['redact', 'mask', 'reveal'])),
      rule.properties.transform,
    ),
    shown: attribute(Type.Enum(['plaintext', 'masked', 'nothing']), 'What is shown of the data.'),
    reason: attribute(text, 'The decision in words.'),
    rules: attribute(
      Type.Array(explainedRule),
      'The rules in the order in which they are tried, and what became of each.',
    ),
  },
  {
    title: 'AccessExplanation',
    description: 'What a key may do, and which rule decides it. No data of the token is shown.',
  },
);

/** @param application the id of an application that exists, in examples. */
export function explaining(tools: Explaining, application: string): Operation {
  return operation({
    id: 'explainAccess',
    method: 'POST',
    path: '/access/explain',
    summary: 'Explain which rule decides about a token or container, and what is shown',
    description:
      'The response shows no part of the token. Give an `application_id` or a `key_id`. For `token:use`, ' +
      '`proxy:invoke` and `reactor:invoke`, `shown` is `plaintext` whatever the transform: the value goes whole to ' +
      'destinations and code that an administrator wrote, and may come back to the caller through them.',
    permission: 'application:read',
    body: accessQuestion,
    reply: { status: 200, body: accessExplanation },
    problems: ['not_found'],
    example: {
      body: { application_id: application, permission: 'token:read', container: '/pci/high/' },
      reply: { allowed: true, decided_by: 'rule', transform: 'redact', shown: 'nothing' },
    },
    handle: ({ caller, body }) => explainAccess(tools, caller, body),
  });
}

/** “Full Access”. */
const template = '6f486ec1-ddf4-4040-b7f1-3ddca4209495';

/** What can be held, and what to start from. */
export function permissionsAndTemplates(tools: Explaining): Operation[] {
  return [
    operation({
      id: 'listPermissions',
      method: 'GET',
      path: '/permissions',
      summary: 'List permissions',
      permission: 'any key',
      query: permissionQuery,
      reply: { status: 200, body: Type.Array(permission) },
      example: { query: { application_type: 'public' } },
      handle: ({ caller, query }) => listPermissions(tools, caller, query.application_type),
    }),
    operation({
      id: 'listApplicationTemplates',
      method: 'GET',
      path: '/application-templates',
      summary: 'List application templates',
      permission: 'any key',
      reply: { status: 200, body: Type.Array(applicationTemplate) },
      example: {},
      handle: ({ caller }) => listTemplates(tools, caller),
    }),
    operation({
      id: 'getApplicationTemplate',
      method: 'GET',
      path: '/application-templates/:id',
      summary: 'Read an application template',
      permission: 'any key',
      params: byId,
      reply: { status: 200, body: applicationTemplate },
      example: { params: { id: template }, reply: { id: template, name: 'Full Access' } },
      handle: ({ caller, params }) => readTemplate(tools, caller, params.id),
    }),
  ];
}
