/** Proxies that refuse every call: an earlier release stored a client key with which each handshake takes seconds. */

import { isIntegrityError } from '../../base/errors.ts';
import { readPrivateKey, rsaBitsMax } from '../../keys/client-certificate.ts';
import { openProxy } from '../../proxies/row.ts';
import { openerOf } from '../../rules/openings.ts';
import { provenRows } from '../../rules/proven-row.ts';
import { silentQuarantine } from '../../rules/quarantine.ts';
import type { TenantKeys } from '../../rules/tenant.ts';
import type { ReadOnlyStore } from '../../store/open/read-only.ts';
import { proxyPage } from '../../store/queries/proxies.ts';
import type { Row } from '../../store/tables.ts';
import { counted } from '../terminal/progress.ts';
import { type Finding, reporter } from './finding.ts';

/** Proxies of a tenant that are read at once. */
const proxiesAtOnce = 200;

/** Proxies that one finding names. */
const namedMax = 20;

/** Tenants whose proxies are read. */
export const proxyTenantsMax = 1_000;

export async function checkProxies(
  store: ReadOnlyStore,
  tenants: readonly TenantKeys[],
): Promise<readonly Finding[]> {
  const { ok, warning } = reporter('proxies');
  let count = 0;
  const slow: string[] = [];
  for (const tenant of tenants) {
    for await (const row of proxiesOf(store, tenant)) {
      count += 1;
      if (hasSlowClientKey(tenant, row)) slow.push(`${row.proxy_id} (tenant ${tenant.id})`);
    }
  }
  if (slow.length === 0) {
    const which = `${counted(count, 'proxy')} of ${counted(tenants.length, 'tenant')}`;
    return [ok(`no client key of ${which} is too slow to be used`)];
  }
  const more = slow.length > namedMax ? ` and ${slow.length - namedMax} others` : '';
  return [
    warning(
      `calls of these proxies fail, since their client key is too slow: ${slow.slice(0, namedMax).join(', ')}${more}`,
      `Update each with an RSA key of at most ${rsaBitsMax} bits, or an elliptic one.`,
    ),
  ];
}

/** Without those that were altered outside the vault, which nobody can call. */
async function* proxiesOf(
  store: ReadOnlyStore,
  tenant: TenantKeys,
): AsyncGenerator<Row<'proxies'>> {
  for (let skip = 0; ; skip += proxiesAtOnce) {
    const page = { tenant: tenant.id, limit: proxiesAtOnce, after: undefined, skip };
    const found = await store.select(proxyPage(page));
    yield* provenRows({ ...tenant, quarantine: silentQuarantine }, 'proxies', found).rows;
    if (found.length < proxiesAtOnce) return;
  }
}

function hasSlowClientKey(tenant: TenantKeys, row: Row<'proxies'>): boolean {
  try {
    const { definition } = openProxy(openerOf('examine proxies', tenant), row).reveal();
    const { client_key: key } = definition;
    return key !== null && readPrivateKey(key) === undefined;
  } catch (error) {
    if (isIntegrityError(error)) return false;
    throw error;
  }
}
