/** Client certificates of proxies that end soon: from then on their calls fail. */
import { day } from '../base/clock.ts';
import { isIntegrityError } from '../base/errors.ts';
import { readCertificate, summaryOfCertificate } from '../keys/client-certificate.ts';
import { openerOf } from '../rules/openings.ts';
import { provenRows } from '../rules/proven-row.ts';
import type { Tenant } from '../rules/tenant.ts';
import type { ProblemCheck, TenantProblem } from '../rules/tenant-problems.ts';
import { proxyPage } from '../store/queries/proxies.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { openProxy } from './row.ts';

const daysBefore = 30;

export const endingCertificates: ProblemCheck<{ readonly store: Store }> = {
  permission: 'proxy:read',
  find: async ({ store }, tenant, now) => {
    const limit = tenant.quotas.proxy_limit;
    const page = { tenant: tenant.id, ids: undefined, name: undefined, limit, after: undefined };
    const rows = await store.select(proxyPage({ ...page, skip: 0 }));
    return provenRows(tenant, 'proxies', rows).rows.flatMap((row): readonly TenantProblem[] => {
      const end = certificateEnd(tenant, row);
      if (end === undefined || end > now + daysBefore * day) return [];
      const hasEnded = end <= now;
      const when = hasEnded ? 'has ended' : `ends within ${daysBefore} days`;
      return [
        {
          kind: 'certificate',
          severity: hasEnded ? 'problem' : 'warning',
          message: `The client certificate of the proxy ${row.name} ${when}.`,
          advice: 'Update the proxy with a new certificate.',
          entity_type: 'proxy',
          entity_id: row.proxy_id,
        },
      ];
    });
  },
};

function certificateEnd(tenant: Tenant, row: Row<'proxies'>): number | undefined {
  try {
    const { definition } = openProxy(openerOf('examine proxies', tenant), row).reveal();
    const pem = definition.client_certificate;
    const certificate = pem === null ? undefined : readCertificate(pem);
    return certificate && summaryOfCertificate(certificate).expiresAt;
  } catch (error) {
    if (isIntegrityError(error)) return undefined;
    throw error;
  }
}
