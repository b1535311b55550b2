/** What is checked behind the schemas of requests, in whose place another message says what is wrong. */
import { containerLengthMax, containerPattern } from '../../lib/container.ts';
import {
  conditionsMax,
  conditionValueLengthMax,
  permissionsMax,
  rulesMax,
} from '../../rules/access-rules.ts';
import { type PermissionRow, permissions } from '../../rules/permissions.ts';
import { codeLengthMax } from '../../sandbox/limits.ts';
import { metadataKeyLengthMax, metadataKeysMax, searchIndexesMax } from '../../values/contents.ts';
import { eventTypeNames } from '../../vault/events/types.ts';
import { pathLengthMax, pathsMax } from '../../vault/proxies/addresses.ts';
import {
  proxyMethods,
  timeoutSecondsMax,
  timeoutSecondsMin,
} from '../../vault/proxies/definition.ts';
import type { Schema } from '../schemas/shared.ts';
import { requestOf } from './attributes.ts';

export const containerShape = { pattern: containerPattern.source, maxLength: containerLengthMax };
const named = (rows: readonly [string, PermissionRow][]) => ({
  maxItems: permissionsMax,
  items: { enum: rows.map(([name]) => name) },
});
const all = Object.entries<PermissionRow>(permissions);
const held = named(all);
const rules = { maxItems: rulesMax };
const containers = { maxItems: 1, items: containerShape };
const metadata = {
  maxProperties: metadataKeysMax,
  propertyNames: { minLength: 1, maxLength: metadataKeyLengthMax },
};
const eventTypes = { minItems: 1, items: { enum: eventTypeNames } };
/** Older clients may still send null. */
const removed = { type: 'null', deprecated: true };
const object = { type: ['object', 'null'] };

/** By the name of the schema and the attribute. */
const forms: Readonly<Record<string, Schema>> = {
  'AccessRuleRequest.priority': { minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
  'AccessRuleRequest.container': containerShape,
  'AccessRuleRequest.conditions': { minItems: 1, maxItems: conditionsMax },
  'AccessRuleRequest.permissions': { minItems: 1, ...named(all.filter(([, row]) => row.token)) },
  'AccessCondition.value': { minLength: 1, maxLength: conditionValueLengthMax },
  'ApplicationRequest.permissions': held,
  'ApplicationRequest.rules': rules,
  'ApplicationUpdate.permissions': held,
  'ApplicationUpdate.rules': rules,
  'SessionAuthorization.permissions': held,
  'SessionAuthorization.rules': rules,
  'AccessQuestion.permission': { enum: all.map(([name]) => name) },
  'AccessQuestion.container': containerShape,
  'TokenRequest.containers': containers,
  'TokenPatch.containers': containers,
  'TokenRequest.metadata': metadata,
  'TokenPatch.metadata': metadata,
  'TokenRequest.search_indexes': { maxItems: searchIndexesMax },
  'TokenPatch.search_indexes': { maxItems: searchIndexesMax },
  'BankVerificationRequest.country_code': { pattern: '^[Uu][Ss]$' },
  'ReactRequest.args': object,
  'ReplayRequest.types': eventTypes,
  ...each('Proxy', ['Request', 'Patch'], {
    timeout: { minimum: timeoutSecondsMin, maximum: timeoutSecondsMax },
    allowed_paths: {
      minItems: 1,
      maxItems: pathsMax,
      // Visible characters of ASCII without #, ? and \.
      items: { maxLength: pathLengthMax, pattern: '^[/*][!"$->@-\\[\\]-~]*$' },
    },
    allowed_methods: { minItems: 1, uniqueItems: true, items: { enum: proxyMethods } },
    request_transforms: { items: { type: 'object' } },
    response_transforms: { items: { type: 'object' } },
    request_reactor_id: removed,
    response_reactor_id: removed,
  }),
  ...each('Reactor', ['Request', 'Patch'], {
    code: { minLength: 1, maxLength: codeLengthMax },
    runtime: object,
    formula: removed,
  }),
  ...each('Webhook', ['Request', 'Update'], { events: eventTypes }),
};

/** Of the requests that create and change one kind of thing. */
function each(
  noun: string,
  requests: readonly string[],
  attributes: Readonly<Record<string, Schema>>,
): Readonly<Record<string, Schema>> {
  const ofRequest = (request: string) =>
    Object.entries(attributes).map(([name, form]) => [`${noun}${request}.${name}`, form] as const);
  return Object.fromEntries(requests.flatMap(ofRequest));
}

/** Of filters by metadata in a query. */
export const metadataForm = {
  type: 'object',
  maxProperties: metadataKeysMax,
  propertyNames: { minLength: 1 },
  additionalProperties: { type: 'string' },
};

export function formOf(schema: string | undefined, attribute: string): Schema | undefined {
  return forms[`${requestOf(schema)}.${attribute}`];
}

/** Of a schema that also allows null, the form is that of what it allows otherwise. */
export function withForm(schema: Schema, form: Schema | undefined): Schema {
  if (form === undefined) return schema;
  if (form === removed) return removed;
  const { anyOf, items = {}, ...others } = schema as { anyOf?: readonly Schema[]; items?: Schema };
  if (anyOf) {
    const [first = {}, ...rest] = anyOf;
    return { ...others, anyOf: [withForm(first, form), ...rest] };
  }
  return {
    ...schema,
    ...form,
    ...('items' in form && { items: withForm(items, form['items'] as Schema) }),
  };
}
