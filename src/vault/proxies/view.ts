/** A proxy as callers see it. */

import { readCertificate, summaryOfCertificate } from '../../crypto/client-certificate.ts';
import { formatTimestamp } from '../../lib/dates.ts';
import type { Caller } from '../../rules/caller.ts';
import { hostOfKey, type VaultNames } from '../../rules/host-names.ts';
import { openerFor } from '../../rules/openings.ts';
import type { Permission } from '../../rules/permissions.ts';
import { holds } from '../../rules/policy.ts';
import type { Row } from '../../store/tables.ts';
import { openProxy } from './row.ts';

/** The values of a configuration are for those who may change them; others see the names. */
export const configurationPermission = 'proxy:update';

/** Who sees a proxy, and the permission for which it is opened. */
export interface Viewing {
  readonly caller: Caller;
  readonly by: Permission;
}

/**
 * As much as the caller may see. Nobody sees the client's private key.
 * @param names the vault's, below which a proxy without another name is called.
 * @throws VaultError `integrity` when the row was altered.
 */
export function viewProxy(names: VaultNames, viewing: Viewing, row: Row<'proxies'>): object {
  const { caller, by } = viewing;
  const { configuration } = openProxy(openerFor(caller, by), row).reveal().definition;
  const view = viewWithoutValues(names, viewing, row);
  return holds(caller.policy, configurationPermission) ? { ...view, configuration } : view;
}

/** The proxy with the names of its configuration alone. */
export function viewWithoutValues(
  names: VaultNames,
  { caller, by }: Viewing,
  row: Row<'proxies'>,
): object {
  const { key, definition } = openProxy(openerFor(caller, by), row).reveal();
  const { configuration, client_certificate, client_key: _key, ...rest } = definition;
  const { allowed_paths, allowed_methods, ...settings } = rest;
  return {
    id: row.proxy_id,
    tenant_id: row.tenant_id,
    key,
    name: row.name,
    ...settings,
    ...singular('request_transform', settings.request_transforms),
    ...singular('response_transform', settings.response_transforms),
    configuration: Object.fromEntries(Object.keys(configuration).map((name) => [name, null])),
    proxy_host: row.host ?? hostOfKey(key, names) ?? null,
    ...(allowed_paths && { allowed_paths }),
    ...(allowed_methods && { allowed_methods }),
    ...(client_certificate && { client_certificate: viewCertificate(client_certificate) }),
    state: 'active',
    created_by: row.created_by,
    created_at: formatTimestamp(row.created_at),
    ...(row.modified_by !== null && { modified_by: row.modified_by }),
    ...(row.modified_at !== null && { modified_at: formatTimestamp(row.modified_at) }),
  };
}

/** For clients that know one transform on each side. */
function singular(name: string, [first, ...others]: readonly unknown[]) {
  return first !== undefined && others.length === 0 && { [name]: first };
}

function viewCertificate(pem: string): object | undefined {
  const certificate = readCertificate(pem);
  if (certificate === undefined) return undefined;
  const { subject, expiresAt } = summaryOfCertificate(certificate);
  return { subject, expires_at: formatTimestamp(expiresAt) };
}
