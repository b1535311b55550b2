/** Shapes of tenants. */
import Type from 'typebox';
import { applicationName } from './application.ts';
import { mapOf, nullable, strict, text, textMap, timestamp, uuid } from './shared.ts';

export const tenant = Type.Object(
  {
    id: uuid,
    name: text,
    type: text,
    settings: textMap,
    quotas: mapOf(Type.Integer()),
    created_at: timestamp,
    modified_by: Type.Optional(uuid),
    modified_at: Type.Optional(timestamp),
  },
  { title: 'Tenant' },
);

export const tenantUpdate = Type.Object(
  { name: applicationName, settings: nullable(textMap) },
  { ...strict, title: 'TenantUpdate' },
);

export const usageReport = Type.Object(
  {
    total_tokens: Type.Integer(),
    token_report: Type.Object({
      total_tokens: Type.Integer(),
      monthly_active_tokens: Type.Integer({
        description: 'Tokens created since the month began, in UTC.',
      }),
      metrics_by_type: mapOf(Type.Object({ count: Type.Integer(), last_created_at: timestamp })),
    }),
    storage: Type.Optional(
      Type.Object({ stored_bytes: Type.Integer(), by_application: mapOf(Type.Integer()) }),
    ),
  },
  { title: 'UsageReport' },
);
