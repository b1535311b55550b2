/** The caller's own tenant. */
import Type from 'typebox';
import { deleteTenant } from '../access/tenants/delete.ts';
import { readTenant, type TenantReading } from '../access/tenants/read.ts';
import { updateTenant } from '../access/tenants/update.ts';
import { reportUsage } from '../access/tenants/usage-report.ts';
import type { Store } from '../store/store.ts';
import { operation, type Resource } from './declaration/operation.ts';
import { attribute, object } from './declaration/shape.ts';
import { mapOf, name, nullable, shared, strict, text, textMap, timestamp } from './shapes.ts';

const { id, created_at, modified_by, modified_at } = shared;

const settings = attribute(textMap, 'Texts by name; see Settings.');

const tenant = object(
  {
    id,
    name: shared.name,
    type: attribute(text, '`test` or `production`.'),
    settings,
    quotas: attribute(
      mapOf(Type.Integer()),
      'What the operator allows; see Quotas. Durations are milliseconds.',
    ),
    created_at,
    modified_by,
    modified_at,
  },
  { title: 'Tenant' },
);

const tenantUpdate = object(
  { name, settings: attribute(nullable(textMap), settings) },
  { ...strict, title: 'TenantUpdate' },
);

const totalTokens = attribute(Type.Integer(), 'How many tokens there are.');

const tokensOfType = object({
  count: attribute(Type.Integer(), 'How many there are.'),
  last_created_at: attribute(timestamp, 'When the last one was created.'),
});

const tokenReport = object({
  total_tokens: totalTokens,
  monthly_active_tokens: attribute(Type.Integer(), 'Tokens created since the month began, in UTC.'),
  metrics_by_type: attribute(mapOf(tokensOfType), 'Tokens by type.'),
});

const storage = object({
  stored_bytes: attribute(Type.Integer(), 'Bytes that count against the quota token_storage.'),
  by_application: attribute(
    mapOf(Type.Integer()),
    'By the id of each application, the bytes of its tokens, token intents, sessions and stored responses. ' +
      'Those of a public application count against the quota public_application_storage.',
  ),
});

const usageReport = object(
  {
    total_tokens: totalTokens,
    token_report: attribute(tokenReport, 'Tokens in numbers.'),
    storage: attribute(
      Type.Optional(storage),
      'What is stored in bytes; absent where nothing ever was.',
    ),
  },
  { title: 'UsageReport' },
);

export const tenants: Resource<TenantReading & { readonly store: Store }> = {
  tag: 'Tenant',
  description:
    'The tenant of the calling key: its name, its settings, and what the operator allows it.',
  operations: (tools) => [
    operation({
      id: 'getTenant',
      method: 'GET',
      path: '/tenants/self',
      summary: 'Read the tenant, its settings and its quotas',
      permission: 'tenant:read',
      reply: { status: 200, body: tenant },
      example: {},
      handle: ({ caller }) => readTenant(tools, caller),
    }),
    operation({
      id: 'updateTenant',
      method: 'PUT',
      path: '/tenants/self',
      summary: 'Rename the tenant and change some of its settings',
      description: 'Settings that are absent stay.',
      permission: 'tenant:update',
      body: tenantUpdate,
      reply: { status: 200, body: tenant },
      example: {
        body: { name: 'Shop', settings: { deduplicate_tokens: 'true' } },
        reply: { name: 'Shop', settings: { deduplicate_tokens: 'true' } },
      },
      handle: ({ caller, body }) => updateTenant(tools, caller, body),
    }),
    operation({
      id: 'getUsage',
      method: 'GET',
      path: '/tenants/self/reports/usage',
      summary: 'Count the tokens of the tenant',
      permission: 'report:read',
      reply: { status: 200, body: usageReport },
      example: {},
      handle: ({ caller }) => reportUsage(tools, caller),
    }),
    operation({
      id: 'deleteTenant',
      method: 'DELETE',
      path: '/tenants/self',
      summary: 'Delete the tenant and destroy its keys, so that none of its data can be read again',
      description: 'There is no way back.',
      permission: 'tenant:delete',
      reply: { status: 204 },
      example: {},
      handle: ({ caller }) => deleteTenant(tools, caller),
    }),
  ],
};
