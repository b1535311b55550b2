/** The proxy of a call: one that was set up before, or one that the call itself describes. */
import { second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import type { ProxyId } from '../../base/ids.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { flawOfDestination } from '../addresses.ts';
import type { FoundProxy } from '../find.ts';

type Configured = Extract<FoundProxy, { readonly proxy: unknown }>['proxy'];

export type CalledProxy = Omit<Configured, 'id' | 'name' | 'configuration'> & {
  readonly id: ProxyId | typeof ephemeralId;
  /** An ephemeral proxy has none. */
  readonly name?: string;
  /** What expressions can name of it; an ephemeral proxy has none. */
  readonly configuration: Configured['configuration'] | undefined;
};

/** How the log and metrics name what has no id: they never name its address. */
export const ephemeralId = 'ephemeral';

const timeoutMs = 25 * second;

/**
 * @param url where the caller wants the request to be sent, `header` what says so.
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
  };
}

/** A 400 about one part of a call, such as `body`, `path` or a header by its name. */
export function invalidCall(part: string, message: string): VaultError {
  return new VaultError('invalid_proxy_request', {
    public: `The request cannot be sent: ${part} ${message}.`,
    errors: { [part]: [message] },
  });
}
