/** A proxy as it is stored: its settings sealed, the whole row proven, and the addresses that point to it. */

import { type Binding, openText, sealText } from '../../crypto/envelope.ts';
import type { Random } from '../../lib/random.ts';
import { Secret } from '../../lib/secret.ts';
import { namingRow } from '../../rules/bound-row.ts';
import type { Opener } from '../../rules/openings.ts';
import { proven, requireProven } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';
import type { ProxyDefinition } from './definition.ts';

/** What is sealed: the definition, and the key by which calls name the proxy. */
export interface ProxyBody {
  readonly key: string;
  readonly definition: ProxyDefinition;
}

export interface ProxySealing {
  readonly tenant: Tenant;
  readonly body: ProxyBody;
  readonly random: Random;
}

type UnsealedProxy = Omit<Row<'proxies'>, 'body' | 'proof'>;

export function proxyRow(
  { tenant, body, random }: ProxySealing,
  row: UnsealedProxy,
): Row<'proxies'> {
  const keys = tenant.keyring.sealing('data');
  const sealed = sealText(keys, bindingOf(row), JSON.stringify(body), random);
  return proven(tenant, 'proxies', { ...row, body: sealed });
}

/**
 * The settings of a proxy, from a row that is as the vault wrote it.
 * @throws VaultError `integrity`, which names the row, when anything of it was altered.
 */
export function openProxy({ keyring, grant }: Opener, row: Row<'proxies'>): Secret<ProxyBody> {
  const { body } = requireProven({ keyring }, 'proxies', row);
  try {
    const text = openText(keyring.opening('data', grant), bindingOf(row), body);
    return new Secret(bodyOf(JSON.parse(text.reveal()) as StoredBody));
  } catch (error) {
    throw namingRow(error, { entity: 'proxy', id: row.proxy_id });
  }
}

type StoredBody = Omit<ProxyBody, 'definition'> & {
  readonly definition: Omit<ProxyDefinition, 'allow_encrypted'> & Partial<ProxyDefinition>;
};

/** Proxies that an earlier release stored do not say whether they allow encrypted data. */
function bodyOf({ key, definition }: StoredBody): ProxyBody {
  return {
    key,
    definition: { ...definition, allow_encrypted: definition.allow_encrypted ?? false },
  };
}

/** A field of its own: what is sealed of a proxy is never taken for the data of a token with the same id. */
function bindingOf({ tenant_id, proxy_id, version }: UnsealedProxy): Binding {
  return { tenant: tenant_id, id: proxy_id, field: 'proxy.body', row: String(version) };
}

type AddressColumns = Pick<Row<'proxies'>, 'tenant_id' | 'proxy_id' | 'key_hash' | 'host'>;

export const keyAddress = (hash: string): string => `key:${hash}`;
export const hostAddress = (host: string): string => `host:${host}`;

/** Where the directory has to point to the proxy. */
export function addressesOf(row: AddressColumns): readonly string[] {
  return [keyAddress(row.key_hash), ...(row.host === null ? [] : [hostAddress(row.host)])];
}

export function addressRow(
  { tenant_id, proxy_id }: AddressColumns,
  address: string,
): Row<'proxy_addresses'> {
  return { address, tenant_id, proxy_id };
}
