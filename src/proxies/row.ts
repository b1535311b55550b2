/** The stored form of a proxy: sealed settings, a proof for the whole row, and the addresses that point to it. */

import type { Random } from '../base/random.ts';
import { Secret } from '../base/secret.ts';
import type { Opener, Resealer } from '../rules/openings.ts';
import { type Keys, proven, requireProven } from '../rules/proven-row.ts';
import { openSettings, resealSettings, sealSettings } from '../rules/sealed-settings.ts';
import type { Unproven } from '../store/stored-row.ts';
import type { Row } from '../store/tables.ts';
import type { ProxyDefinition } from './definition.ts';

/** The sealed part: the definition, and the key with which calls name the proxy. */
export interface ProxyBody {
  readonly key: string;
  readonly definition: ProxyDefinition;
}

type UnsealedProxy = Omit<Row<'proxies'>, 'body' | 'proof'>;

export function proxyRow(
  { keyring }: Keys,
  { body, random }: { readonly body: ProxyBody; readonly random: Random },
  row: UnsealedProxy,
): Row<'proxies'> {
  const sealed = sealSettings({ keyring, random }, sealedAs(row), body);
  return proven({ keyring }, 'proxies', { ...row, body: sealed });
}

/**
 * Returns the settings of a proxy.
 * @throws VaultError `integrity`, which names the row, if what is sealed in it was altered.
 */
export function openProxy(opener: Opener, row: Row<'proxies'>): Secret<ProxyBody> {
  return new Secret(bodyOf(openSettings<StoredBody>(opener, sealedAs(row), row.body).reveal()));
}

type StoredBody = Omit<ProxyBody, 'definition'> & {
  readonly definition: Omit<ProxyDefinition, 'allow_encrypted'> & Partial<ProxyDefinition>;
};

/** In proxies stored by an earlier release, the setting for encrypted data is absent. */
function bodyOf({ key, definition }: StoredBody): ProxyBody {
  return {
    key,
    definition: { ...definition, allow_encrypted: definition.allow_encrypted ?? false },
  };
}

/** The row in its next version, with its settings sealed again. @throws VaultError `integrity` when it was altered. */
export function resealedProxy(resealer: Resealer, stored: Unproven<'proxies'>): Row<'proxies'> {
  const { proof: _proof, ...row } = requireProven(resealer, 'proxies', stored);
  const body = resealSettings(resealer, sealedAs(row), row.body);
  return proven(resealer, 'proxies', { ...row, version: row.version + 1, body });
}

function sealedAs({ tenant_id, proxy_id: id, version }: UnsealedProxy) {
  return { entity: 'proxy', tenant_id, id, version } as const;
}

type AddressColumns = Pick<Row<'proxies'>, 'tenant_id' | 'proxy_id' | 'key_hash' | 'host'>;

export const keyAddress = (hash: string): string => `key:${hash}`;
export const hostAddress = (host: string): string => `host:${host}`;

/** The addresses at which the directory must point to the proxy. */
export function addressesOf(row: AddressColumns): readonly string[] {
  return [keyAddress(row.key_hash), ...(row.host === null ? [] : [hostAddress(row.host)])];
}

export function addressRow(
  { tenant_id, proxy_id }: AddressColumns,
  address: string,
): Row<'proxy_addresses'> {
  return { address, tenant_id, proxy_id };
}
