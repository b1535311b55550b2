/** Tenants whose altered rows a test counts. */
import { createQuarantine } from '../../src/rules/quarantine.ts';
import type { Tenant, Tenants } from '../../src/rules/tenant.ts';

/** @param report is called with each row that is set aside. */
export function guarded(tenants: Tenants, report: () => void): Tenants {
  const quarantine = createQuarantine(report);
  const withOurs = (tenant: Tenant | undefined) => tenant && { ...tenant, quarantine };
  return {
    ...tenants,
    known: (id) => withOurs(tenants.known(id)),
    find: async (id) => withOurs(await tenants.find(id)),
    findForRequest: async (id) => withOurs(await tenants.findForRequest(id)),
  };
}
