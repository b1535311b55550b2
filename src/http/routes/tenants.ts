/** Routes of the caller's own tenant. */
import type { Store } from '../../store/store.ts';
import { deleteTenant } from '../../vault/tenants/delete.ts';
import { readTenant, type TenantReading } from '../../vault/tenants/read.ts';
import { updateTenant } from '../../vault/tenants/update.ts';
import { reportUsage } from '../../vault/tenants/usage-report.ts';
import { type Route, route } from '../protocol/route.ts';
import { tenant, tenantUpdate, usageReport } from '../schemas/tenant.ts';

export function tenantRoutes(tools: TenantReading & { readonly store: Store }): Route[] {
  return [
    route({
      method: 'GET',
      path: '/tenants/self',
      summary: 'Read the tenant, its settings and its quotas',
      permission: 'tenant:read',
      reply: { status: 200, body: tenant },
      handle: ({ caller }) => readTenant(tools, caller),
    }),
    route({
      method: 'PUT',
      path: '/tenants/self',
      summary: 'Rename the tenant and change some of its settings',
      permission: 'tenant:update',
      body: tenantUpdate,
      reply: { status: 200, body: tenant },
      handle: ({ caller, body }) => updateTenant(tools, caller, body),
    }),
    route({
      method: 'DELETE',
      path: '/tenants/self',
      summary: 'Delete the tenant and destroy its keys, so that none of its data can be read again',
      permission: 'tenant:delete',
      reply: { status: 204 },
      handle: ({ caller }) => deleteTenant(tools, caller),
    }),
    route({
      method: 'GET',
      path: '/tenants/self/reports/usage',
      summary: 'Count the tokens of the tenant',
      permission: 'report:read',
      reply: { status: 200, body: usageReport },
      handle: ({ caller }) => reportUsage(tools, caller),
    }),
  ];
}
