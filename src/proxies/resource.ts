/** Proxies as a stored resource: what is special about creating, reading, listing, changing, and removing them. */
import { isDeepStrictEqual } from 'node:util';
import { formatTimestamp } from '../base/dates.ts';
import { VaultError } from '../base/errors.ts';
import { newUuid, type ProxyId } from '../base/ids.ts';
import type { Random } from '../base/random.ts';
import { readCertificate, summaryOfCertificate } from '../keys/client-certificate.ts';
import { hashProxyKey, newProxyKey } from '../keys/proxy-key.ts';
import type { CodeTools } from '../reactors/code/check.ts';
import type { Caller } from '../rules/caller.ts';
import { shownConfiguration, withoutValues } from '../rules/configuration.ts';
import { hostOfKey, type VaultNames } from '../rules/host-names.ts';
import { requireLinkedApplication } from '../rules/linked-application.ts';
import { openerFor } from '../rules/openings.ts';
import { requireRoom } from '../rules/settings.ts';
import {
  type ListTools,
  merged,
  type NamedResource,
  type PatchedResource,
  viewHistory,
} from '../rules/stored-resource.ts';
import { proxyCount, proxyPage } from '../store/queries/proxies.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { refusalOfLending } from './check-lending.ts';
import { type ProxyRequest, type ProxySettings, parseProxy, requestOf } from './definition.ts';
import { addressRow, hostAddress, keyAddress, openProxy, type ProxyBody, proxyRow } from './row.ts';
import { requireGiven } from './tenant-hosts.ts';

export interface ProxyWriting extends CodeTools, ListTools {
  readonly names: VaultNames;
  readonly store: Store;
  readonly random: Random;
}

type ProxyRow = Row<'proxies'>;
type ProxyResource = NamedResource<'proxies', ProxyId> &
  PatchedResource<'proxies', ProxyRequest, ProxySettings, ProxyBody>;

/**
 * Create and change throw `forbidden` if the key cannot lend the proxy's rights, or if the proxy has code and code is
 * switched off; `conflict` if another proxy has the host; `unprocessable` for code that cannot run; and
 * `validation_failed` for an application that cannot be used, or a host that the tenant was not given.
 */
export function proxyResource(tools: ProxyWriting): ProxyResource {
  const { store, clock, random, names } = tools;

  function viewFor(caller: Caller, row: ProxyRow, body: ProxyBody): object {
    const { configuration } = body.definition;
    const shown = shownConfiguration(caller, configurationPermission, configuration);
    return viewProxy(row, body, { names, configuration: shown });
  }

  return {
    store,
    clock,
    table: 'proxies',
    path: '/proxies',
    open: (caller, row) => openProxy(openerFor(caller, 'proxy:update'), row).reveal(),
    count: proxyCount,
    page: proxyPage,
    parse: (request) => parseProxy(request, names),

    patched({ name, host }, { definition }, patch) {
      // For a single transform, the older attribute replaces the stored list.
      const request = {
        ...requestOf({ name, host, definition }),
        ...(patch.request_transform !== undefined && { request_transforms: null }),
        ...(patch.response_transform !== undefined && { response_transforms: null }),
      };
      const settings = parseProxy(merged(request, patch), names);
      return { ...settings, isHostKept: patch.proxy_host === undefined };
    },

    async check(caller, attempt, { settings: { definition }, before }) {
      if (!isDeepStrictEqual(before?.definition, definition)) {
        const lending = { entity: 'proxy', ...attempt, definition } as const;
        const refused = await refusalOfLending(tools, caller, lending);
        if (refused) return refused;
      }
      await requireLinkedApplication(store, caller.tenant, definition.application_id);
      return undefined;
    },

    requireRoom: async ({ id: tenant, quotas }) =>
      requireRoom(quotas, 'proxy_limit', await store.select(proxyCount({ tenant }))),

    async make(caller, columns, { name, host, definition }) {
      const { tenant } = caller;
      const key = newProxyKey(random);
      const proxy_id = newUuid<ProxyId>(random);
      const unsealed = { ...columns, proxy_id, name, key_hash: hashProxyKey(key), host };
      const sealed = { key, definition };
      const row = proxyRow(tenant, { body: sealed, random }, unsealed);
      await requireGiven(store, tenant, host);
      const { insert } = await addressesToChange(store, { after: row });
      const body = viewProxy(row, sealed, {
        names,
        configuration: withoutValues(definition.configuration),
      });
      const narrower = { permission: configurationPermission, body } as const;
      return { row, insert, reply: { body: viewFor(caller, row, sealed), narrower } };
    },

    async revise({ tenant }, next, { settings, before: { key } }) {
      const { name, definition, isHostKept } = settings;
      // The default name is not stored.
      const host = settings.host === hostOfKey(key, names) ? null : settings.host;
      const row = proxyRow(tenant, { body: { key, definition }, random }, { ...next, name, host });
      if (isHostKept) return { row };
      await requireGiven(store, tenant, host);
      return { row, ...(await addressesToChange(store, { before: next, after: row })) };
    },

    show: (caller, row, operation) =>
      viewFor(caller, row, openProxy(openerFor(caller, `proxy:${operation}`), row).reveal()),
  };
}

/** The directory rows for a new proxy, or for one whose host changes. */
async function addressesToChange(
  store: Store,
  { before, after }: { readonly before?: Row<'proxies'>; readonly after: Row<'proxies'> },
) {
  const pointer = after.host === null ? undefined : await pointerOf(store, after.host);
  if (pointer && pointer.proxy_id !== after.proxy_id) throw hostTaken();
  const hosts = after.host === null || pointer ? [] : [hostAddress(after.host)];
  const added = before === undefined ? [keyAddress(after.key_hash), ...hosts] : hosts;
  const left = before?.host === after.host ? null : (before?.host ?? null);
  const dropped = left === null ? [] : await ownAddress(store, { ...after, host: left });
  return {
    insert: { proxy_addresses: added.map((address) => addressRow(after, address)) },
    remove: { proxy_addresses: dropped },
  };
}

function pointerOf(store: Store, host: string): Promise<Row<'proxy_addresses'> | undefined> {
  return store.get('proxy_addresses', { address: hostAddress(host) });
}

/** The host's row in the directory, unless it is gone, or an attacker changed it to belong to another proxy. */
async function ownAddress(store: Store, { host, proxy_id }: Row<'proxies'>) {
  const row = await pointerOf(store, host ?? '');
  return row?.proxy_id === proxy_id ? [{ address: row.address }] : [];
}

function hostTaken(): VaultError {
  const message = 'is the host of another proxy';
  return new VaultError('conflict', {
    public: `The attribute proxy_host ${message}.`,
    errors: { proxy_host: [message] },
  });
}

/** Callers with this permission see the values of a configuration. Others see only the names. */
const configurationPermission = 'proxy:update';

interface Viewing {
  /** The vault's names. A proxy without another name has one below them. */
  readonly names: VaultNames;
  readonly configuration: Readonly<Record<string, string | null>>;
}

/** No caller sees the client's private key. */
function viewProxy(
  row: ProxyRow,
  { key, definition }: ProxyBody,
  { names, configuration }: Viewing,
): object {
  const { configuration: _values, client_certificate, client_key: _key, ...rest } = definition;
  const { allowed_paths, allowed_methods, ...settings } = rest;
  return {
    id: row.proxy_id,
    tenant_id: row.tenant_id,
    key,
    name: row.name,
    ...settings,
    ...singular('request_transform', settings.request_transforms),
    ...singular('response_transform', settings.response_transforms),
    configuration,
    proxy_host: row.host ?? hostOfKey(key, names) ?? null,
    ...(allowed_paths && { allowed_paths }),
    ...(allowed_methods && { allowed_methods }),
    ...(client_certificate && { client_certificate: viewCertificate(client_certificate) }),
    state: 'active',
    ...viewHistory(row),
  };
}

/** For clients that support only one transform per direction. */
function singular(name: string, [first, ...others]: readonly unknown[]) {
  return first !== undefined && others.length === 0 && { [name]: first };
}

function viewCertificate(pem: string): object | undefined {
  const certificate = readCertificate(pem);
  if (certificate === undefined) return undefined;
  const { subject, expiresAt } = summaryOfCertificate(certificate);
  return { subject, expires_at: formatTimestamp(expiresAt) };
}
