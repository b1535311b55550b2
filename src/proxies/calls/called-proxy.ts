/** The proxy of a call: a stored proxy, or one that the call itself describes. */
import { second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import type { ProxyId } from '../../base/ids.ts';
import type { EgressPolicy } from '../../rules/egress-policies.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { flawOfDestination } from '../addresses.ts';
import type { FoundProxy } from '../find.ts';

type Configured = Extract<FoundProxy, { readonly proxy: unknown }>['proxy'];

export type CalledProxy = Omit<Configured, 'id' | 'name' | 'configuration'> & {
  readonly id: ProxyId | typeof ephemeralId | typeof egressId;
  /** Absent for an ephemeral proxy. */
  readonly name?: string;
  /** The policy of the application whose program sends the request. */
  readonly egress?: EgressPolicy;
  /** The values that expressions can refer to; absent for an ephemeral proxy. */
  readonly configuration: Configured['configuration'] | undefined;
};

/** How the log and metrics name a proxy without an id: they never contain its address. */
export const ephemeralId = 'ephemeral';

/** The same for the requests of programs, whose policies are in the place of a proxy. */
export const egressId = 'egress';

const timeoutMs = 25 * second;
/** Models of language may be silent for a while. */
const egressTimeoutMs = 120 * second;

/** A policy in the place of a proxy. */
export function egressProxy(
  tenant: Tenant,
  {
    policy,
    host,
    port,
  }: { readonly policy: EgressPolicy; readonly host: string; readonly port: number },
): CalledProxy {
  const scheme = policy.plain ? 'http' : 'https';
  return {
    ...ephemeralProxy(tenant, { url: `https://${host}:${port}`, header: 'host' }),
    id: egressId,
    egress: policy,
    destinationUrl: `${scheme}://${host}:${port}`,
    disableDetokenization: true,
    timeoutMs: egressTimeoutMs,
  };
}

/**
 * @param url the destination that the caller chooses, `header` the name of the header with the URL.
 * @throws VaultError `invalid_proxy_request`
 */
export function ephemeralProxy(
  tenant: Tenant,
  { url, header }: { readonly url: string; readonly header: string },
): CalledProxy {
  const flaw = flawOfDestination(url);
  if (flaw !== undefined) throw invalidCall(header, flaw);
  return {
    id: ephemeralId,
    tenant,
    destinationUrl: url.replace(/\/+$/, ''),
    requestTransforms: [],
    responseTransforms: [],
    applicationId: undefined,
    configuration: undefined,
    requireAuth: true,
    disableDetokenization: false,
    allowEncrypted: false,
    allowedPaths: undefined,
    allowedMethods: undefined,
    timeoutMs,
    clientCertificate: undefined,
    hasSlowClientKey: false,
  };
}

/** A 400 about one part of a call, such as `body`, `path` or a header by its name. */
export function invalidCall(part: string, message: string): VaultError {
  return new VaultError('invalid_proxy_request', {
    public: `The request cannot be sent: ${part} ${message}.`,
    errors: { [part]: [message] },
  });
}
