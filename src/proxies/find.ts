/** Finds the proxy of a call by its key or its host, across all tenants. */

import { type Clock, second } from '../base/clock.ts';
import { integrityError } from '../base/errors.ts';
import { ExpiringMap } from '../base/expiring-map.ts';
import type { ApplicationId, ProxyId } from '../base/ids.ts';
import type { Json } from '../base/json.ts';
import { Secret } from '../base/secret.ts';
import { readPrivateKey } from '../keys/client-certificate.ts';
import { hashProxyKey, proxyKeyPlausible } from '../keys/proxy-key.ts';
import { alteredProxyEntry } from '../rules/anonymous-entries.ts';
import type { Origin } from '../rules/caller.ts';
import { hostLengthMax, keyInHost, type VaultNames } from '../rules/host-names.ts';
import { openerOf } from '../rules/openings.ts';
import { ifProven } from '../rules/proven-row.ts';
import type { Tenant, Tenants } from '../rules/tenant.ts';
import type { Store } from '../store/store.ts';
import type { Unproven } from '../store/stored-row.ts';
import type { Row } from '../store/tables.ts';
import type { ProxyDefinition } from './definition.ts';
import { addressesOf, hostAddress, keyAddress, openProxy } from './row.ts';
import { isGiven } from './tenant-hosts.ts';

/** A proxy as calls use it. */
export interface Proxy {
  readonly id: ProxyId;
  readonly tenant: Tenant;
  readonly name: string;
  /** Without a trailing slash, so that a path can follow. */
  readonly destinationUrl: string;
  readonly requestTransforms: readonly Json[];
  readonly responseTransforms: readonly Json[];
  /** The application whose rules apply to a call without a key. It may have been deleted since. */
  readonly applicationId: ApplicationId | undefined;
  readonly configuration: Secret<ReadonlyMap<string, string>>;
  readonly requireAuth: boolean;
  readonly disableDetokenization: boolean;
  /** Whether a call without a key may send data that a client encrypted. */
  readonly allowEncrypted: boolean;
  /** Paths after `/proxy`, exact or with `*`; undefined allows all. */
  readonly allowedPaths: readonly string[] | undefined;
  /** In upper case; undefined allows all. */
  readonly allowedMethods: readonly string[] | undefined;
  readonly timeoutMs: number;
  readonly clientCertificate: Secret<{ readonly cert: string; readonly key: string }> | undefined;
  /** An earlier release stored a client key with which each handshake would block the thread for seconds. */
  readonly hasSlowClientKey: boolean;
}

/** `altered`: the proxy was changed outside the vault. The caller sees the same response as for an unknown proxy. */
export type FoundProxy =
  | { readonly proxy: Proxy }
  | { readonly altered: ProxyId; readonly tenant: Tenant };

export interface ProxyFinder {
  /** `undefined` if no proxy has the key, or if the proxy is deleted. */
  byKey(key: string, origin: Origin): Promise<FoundProxy | undefined>;
  /**
   * @param host of the request, without a port, as the client sent it. `undefined` also for a name that was not
   * given.
   */
  byHost(host: string, origin: Origin): Promise<FoundProxy | undefined>;
}

export interface ProxyFinding {
  readonly store: Store;
  readonly tenants: Tenants;
  readonly clock: Clock;
  readonly names: VaultNames;
}

/** Changes on another server take effect within a second; half of it is for the read itself. */
const staleMsMax = second / 2;
/** A proxy may take several hundred kilobytes. */
const proxiesCached = 1_000;

/** Between two reads, a host may move from one proxy to another. */
const readsMax = 2;

/**
 * Only existing proxies are cached, so callers that invent keys or hosts cannot fill the memory. Keys are looked up
 * by their SHA-256: the timing of a lookup reveals nothing about how much of a guess was right.
 */
export function createProxyFinder(options: ProxyFinding): ProxyFinder {
  const { store, tenants, clock, names } = options;
  const recent = new ExpiringMap<string, Proxy>({
    clock,
    ageMsMax: staleMsMax,
    entriesMax: proxiesCached,
    // Commits of this process take effect immediately, on all of its threads.
    epoch: () => store.epochs.now('proxies'),
  });

  /** The row to which the directory points. */
  async function rowAt(address: string): Promise<Unproven<'proxies'> | undefined> {
    const pointer = await store.get('proxy_addresses', { address });
    if (pointer === undefined) return undefined;
    const { tenant_id, proxy_id } = pointer;
    return store.get('proxies', { tenant_id, proxy_id });
  }

  async function load(address: string, origin: Origin): Promise<FoundProxy | undefined> {
    const reading = recent.reading();
    for (let readsLeft = readsMax; ; readsLeft--) {
      const stored = await rowAt(address);
      const tenant = stored && (await tenants.findForRequest(stored.tenant_id));
      if (stored === undefined || tenant === undefined) return undefined;
      const row = ifProven(tenant, 'proxies', stored);
      if (row && !addressesOf(row).includes(address) && readsLeft > 1) continue;
      // The operator may have revoked the tenant's name, or an older release may not have checked it.
      if (row?.host && address === hostAddress(row.host)) {
        if (!(await isGiven(store, tenant, row.host))) return undefined;
      }
      const proxy = row && tenant.quarantine.read(() => openedProxy(tenant, row, address));
      if (proxy) {
        recent.set(address, proxy, reading);
        return { proxy };
      }
      const altered = { tenant_id: tenant.id, proxy_id: stored.proxy_id };
      await store.commit({ entries: [alteredProxyEntry(origin, clock.now(), altered)] });
      return { altered: stored.proxy_id, tenant };
    }
  }

  async function find(address: string, origin: Origin): Promise<FoundProxy | undefined> {
    const known = recent.get(address);
    if (known === undefined) return load(address, origin);
    // Its settings and quotas may have changed, or the tenant may be deleted.
    const { id } = known.tenant;
    const tenant = tenants.known(id) ?? (await tenants.findForRequest(id));
    return tenant && { proxy: tenant === known.tenant ? known : { ...known, tenant } };
  }

  const byKey: ProxyFinder['byKey'] = (key, origin) =>
    proxyKeyPlausible(key) ? find(keyAddress(hashProxyKey(key)), origin) : notFound;

  /** Clients convert a host to lower case, but keys of older releases contain capital letters. */
  async function byLabel(label: string, origin: Origin): Promise<FoundProxy | undefined> {
    return (await byKey(label.toLowerCase(), origin)) ?? byKey(label, origin);
  }

  return {
    byKey,
    byHost: (host, origin) => {
      if (host.length > hostLengthMax) return notFound;
      const label = keyInHost(host, names);
      if (label !== undefined) return byLabel(label, origin);
      return find(hostAddress(host.toLowerCase()), origin);
    },
  };
}

const notFound: Promise<undefined> = Promise.resolve(undefined);

/** @throws VaultError `integrity` if the row does not have that address, or what is sealed in it was altered. */
function openedProxy(tenant: Tenant, row: Row<'proxies'>, address: string): Proxy {
  if (!addressesOf(row).includes(address)) {
    throw integrityError(`an address of the proxy ${row.proxy_id} was altered outside the vault`);
  }
  const { definition } = openProxy(openerOf('load proxies', tenant), row).reveal();
  return proxyOfDefinition(tenant, row, definition);
}

function proxyOfDefinition(
  tenant: Tenant,
  row: Row<'proxies'>,
  definition: ProxyDefinition,
): Proxy {
  const { client_certificate: cert, client_key: key } = definition;
  return {
    id: row.proxy_id,
    tenant,
    name: row.name,
    destinationUrl: definition.destination_url.replace(/\/+$/, ''),
    requestTransforms: definition.request_transforms,
    responseTransforms: definition.response_transforms,
    applicationId: definition.application_id ?? undefined,
    configuration: new Secret(new Map(Object.entries(definition.configuration))),
    requireAuth: definition.require_auth,
    disableDetokenization: definition.disable_detokenization,
    allowEncrypted: definition.allow_encrypted,
    allowedPaths: definition.allowed_paths ?? undefined,
    allowedMethods: definition.allowed_methods ?? undefined,
    timeoutMs: definition.timeout * second,
    clientCertificate: cert !== null && key !== null ? new Secret({ cert, key }) : undefined,
    hasSlowClientKey: key !== null && readPrivateKey(key) === undefined,
  };
}
