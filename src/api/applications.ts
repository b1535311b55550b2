/** Applications and their keys. */
import Type from 'typebox';
import {
  createKey,
  deleteKey,
  type KeyWriting,
  listKeys,
  readKey,
  regenerateKey,
} from '../access/applications/keys.ts';
import {
  type ApplicationListing,
  type ApplicationWriting,
  applicationResource,
  listApplications,
  updateApplication,
} from '../access/applications/resource.ts';
import { egressBudgetMax } from '../access/applications/row.ts';
import { originsMax } from '../rules/page-origins.ts';
import { create, read, remove } from '../rules/stored-resource.ts';
import type { Explaining } from '../tokens/explain-access.ts';
import {
  access,
  accessRequest,
  applicationType,
  applicationTypeMeaning,
  explaining,
  permissionsAndTemplates,
} from './access.ts';
import { idOf, operation, type Resource } from './declaration/operation.ts';
import { attribute, documented, object } from './declaration/shape.ts';
import { egressPolicies, egressRequest, explainingEgress } from './egress.ts';
import {
  byId,
  filters,
  line,
  name,
  nullable,
  offsetPage,
  pageQuery,
  pathId,
  shared,
  strict,
  text,
  timestamp,
  uuid,
} from './shapes.ts';

const { id, tenant_id, created_by, created_at, modified_by, modified_at } = shared;

const originsMeaning =
  'The origins of its pages, for example `https://shop.example.com`, or `https://*.example.com` for one label. ' +
  'Other pages can neither use its keys nor show its fields. Only for public applications; without it, any page can ' +
  'use its keys, and none can show its fields.';

const originsRequest = attribute(
  nullable(documented(Type.Array(line({ maxLength: 300 })), { maxItems: originsMax })),
  originsMeaning,
);

const valuesMax = Type.Integer({ minimum: 1, maximum: egressBudgetMax });

const budgetShape = object(
  {
    per_hour: attribute(Type.Optional(valuesMax), 'How many values in an hour.'),
    per_day: attribute(Type.Optional(valuesMax), 'How many values in a day.'),
  },
  { ...strict, title: 'EgressBudget' },
);

const budgetMeaning =
  'How many values each of its keys may have revealed. Beyond it, requests get 429 with `Retry-After`.';

const applicationRequest = object(
  {
    name,
    type: attribute(
      applicationType,
      '`private` for servers, `public` for pages and apps, `management` for administration.',
    ),
    ...accessRequest,
    origins: originsRequest,
    egress_budget: attribute(nullable(budgetShape), budgetMeaning),
    egress: egressRequest,
    create_key: attribute(
      nullable(Type.Boolean()),
      'False for an application without a first key.',
    ),
  },
  { ...strict, title: 'ApplicationRequest' },
);

const applicationUpdate = object(
  {
    name,
    ...accessRequest,
    origins: originsRequest,
    egress_budget: attribute(nullable(budgetShape), budgetMeaning),
    egress: egressRequest,
  },
  { ...strict, title: 'ApplicationUpdate' },
);

const applicationKey = object(
  {
    id,
    tenant_id,
    application_id: attribute(uuid, 'The application whose key it is.'),
    key: attribute(Type.Optional(text), 'The text of the key. It is shown once.'),
    version: attribute(text, 'The version of the form of the key.'),
    created_by: Type.Optional(created_by),
    created_at,
    last_used_at: attribute(Type.Optional(timestamp), 'When it was last used, to the hour.'),
  },
  {
    title: 'ApplicationKey',
    description: 'A key of an application. Only the response to its creation has the text, `key`.',
  },
);

const application = object(
  {
    id,
    tenant_id,
    name: shared.name,
    type: attribute(text, applicationTypeMeaning),
    key: attribute(
      Type.Optional(text),
      'The text of the first key. Only the response to the creation has it.',
    ),
    keys: attribute(Type.Array(applicationKey), 'Its keys, without their text.'),
    origins: attribute(Type.Optional(Type.Array(text)), originsMeaning),
    egress_budget: attribute(Type.Optional(budgetShape), budgetMeaning),
    egress: egressPolicies,
    ...access,
    created_by: Type.Optional(created_by),
    created_at,
    modified_by,
    modified_at,
  },
  { title: 'Application' },
);

const type = attribute(Type.Optional(Type.Array(applicationType)), 'Only of this type.');

const applicationQuery = object(
  { id: filters.ids, name: filters.name, type, ...pageQuery },
  strict,
);

const keyQuery = object(
  { id: attribute(Type.Optional(Type.Array(text)), filters.ids), type },
  strict,
);

const byKeyId = object({ id: pathId, keyId: attribute(text, 'The id of the key.') });

const exampleId = idOf(3);
const keyId = idOf(4);
const keyText = 'key_test_pvt_…';
const rule = {
  description: 'Support sees the last four digits',
  priority: 1,
  container: '/pci/',
  permissions: ['token:read'],
  transform: 'mask',
};

export const applications: Resource<
  ApplicationWriting & ApplicationListing & KeyWriting & Explaining
> = {
  tag: 'Applications',
  description:
    'An application is a program that uses the vault. Its type says where its keys may be, its rules what they may do.',
  operations: (tools) => {
    const stored = applicationResource(tools);
    return [
      operation({
        id: 'createApplication',
        method: 'POST',
        path: '/applications',
        summary: 'Create an application and its first key',
        description: 'The key is only in this response.',
        permission: 'application:create',
        tagged: true,
        body: applicationRequest,
        reply: { status: 201, body: application },
        example: {
          body: { name: 'Support desk', type: 'private', rules: [rule] },
          reply: {
            id: exampleId,
            name: 'Support desk',
            type: 'private',
            key: keyText,
            rules: [rule],
          },
        },
        handle: ({ caller, body }) => create(stored, caller, body),
      }),
      operation({
        id: 'listApplications',
        method: 'GET',
        path: '/applications',
        summary: 'List applications, newest first',
        permission: 'application:read',
        query: applicationQuery,
        reply: { status: 200, body: offsetPage(application) },
        example: { query: { id: exampleId }, reply: { pagination: { total_items: 1 } } },
        handle: ({ caller, query }) => listApplications(tools, caller, query),
      }),
      operation({
        id: 'getOwnApplication',
        method: 'GET',
        path: '/applications/key',
        summary: 'Read the application of the calling key',
        permission: 'any key',
        reply: { status: 200, body: application },
        example: {},
        handle: ({ caller }) => read(stored, caller, caller.application),
      }),
      operation({
        id: 'getApplication',
        method: 'GET',
        path: '/applications/:id',
        summary: 'Read an application',
        permission: 'application:read',
        tagged: true,
        params: byId,
        reply: { status: 200, body: application },
        example: { params: { id: exampleId }, reply: { id: exampleId, name: 'Support desk' } },
        handle: ({ caller, params }) => read(stored, caller, params.id),
      }),
      operation({
        id: 'updateApplication',
        method: 'PUT',
        path: '/applications/:id',
        summary: "Replace an application's name, permissions and rules, and change its limits",
        description:
          'Absent permissions and rules are removed. Origins, egress policies, and an egress budget stay ' +
          'unless the request has others, or null.',
        permission: 'application:update',
        tagged: true,
        params: byId,
        body: applicationUpdate,
        reply: { status: 200, body: application },
        example: {
          params: { id: exampleId },
          body: { name: 'Support', rules: [{ ...rule, transform: 'redact' }] },
          reply: { id: exampleId, name: 'Support' },
        },
        handle: ({ caller, params, body }) =>
          updateApplication(tools, caller, { id: params.id, update: body }),
      }),
      operation({
        id: 'createKey',
        method: 'POST',
        path: '/applications/:id/keys',
        summary: 'Create another key; existing keys are not changed',
        description: 'The key is only in this response. An application has at most three keys.',
        permission: 'application:create',
        params: byId,
        reply: { status: 201, body: applicationKey },
        problems: ['unprocessable'],
        example: { params: { id: exampleId }, reply: { id: keyId, key: keyText } },
        serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
        handle: ({ caller, params }) => createKey(tools, caller, params.id),
      }),
      operation({
        id: 'listKeys',
        method: 'GET',
        path: '/applications/:id/keys',
        summary: 'List the keys of an application',
        permission: 'application:read',
        params: byId,
        query: keyQuery,
        reply: { status: 200, body: Type.Array(applicationKey) },
        example: { params: { id: exampleId }, query: { id: keyId }, reply: [{ id: keyId }] },
        handle: ({ caller, params, query }) =>
          listKeys(tools, caller, { application: params.id, query }),
      }),
      operation({
        id: 'getKey',
        method: 'GET',
        path: '/applications/:id/keys/:keyId',
        summary: 'Read a key, without its text',
        permission: 'application:read',
        params: byKeyId,
        reply: { status: 200, body: applicationKey },
        example: { params: { id: exampleId, keyId }, reply: { id: keyId } },
        handle: ({ caller, params }) => readKey(tools, caller, params),
      }),
      operation({
        id: 'deleteKey',
        method: 'DELETE',
        path: '/applications/:id/keys/:keyId',
        summary: 'Delete a key',
        permission: 'application:delete',
        params: byKeyId,
        reply: { status: 204 },
        example: { params: { id: exampleId, keyId } },
        handle: ({ caller, params }) => deleteKey(tools, caller, params),
      }),
      operation({
        id: 'regenerateKey',
        method: 'POST',
        path: '/applications/:id/regenerate',
        summary: 'Removed; create another key and delete the old one',
        permission: 'application:update',
        params: byId,
        reply: { status: 204 },
        problems: ['gone'],
        example: { params: { id: exampleId }, status: 410 },
        handle: () => regenerateKey(),
      }),
      explaining(tools, exampleId),
      explainingEgress(tools, exampleId),
      operation({
        id: 'deleteApplication',
        method: 'DELETE',
        path: '/applications/:id',
        summary: 'Delete an application and its keys',
        permission: 'application:delete',
        tagged: true,
        params: byId,
        reply: { status: 204 },
        example: { params: { id: exampleId } },
        handle: ({ caller, params }) => remove(stored, caller, params.id),
      }),
      ...permissionsAndTemplates(tools),
    ];
  },
};
