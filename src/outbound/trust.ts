/** Which TLS connections to other hosts are trusted, and what the vault shows of itself in them. */
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { LruCache } from '../base/lru-cache.ts';
import { OutboundError } from './error.ts';

/** PEM. */
export interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface TrustOptions {
  /** PEM, trusted as the public authorities are. */
  readonly authorities?: readonly string[] | undefined;
}

export interface Credentials {
  /** Another one for each client certificate. */
  readonly id: number;
  readonly context: SecureContext;
}

/** @throws OutboundError `tls` for a client certificate that cannot be used. */
export type Trust = (clientCertificate?: ClientCertificate) => Credentials;

/** Some hundred pairs of certificate and key. */
const rememberedCharactersMax = 1_000_000;

/**
 * Trusts the public authorities and the given ones. A context is made when it is first needed, and once, because it
 * takes milliseconds to read all the authorities.
 */
export function createTrust({ authorities = [] }: TrustOptions): Trust {
  const remembered = new LruCache<Credentials>(rememberedCharactersMax);
  let last = 0;
  return (clientCertificate) => {
    const name = clientCertificate ? `${clientCertificate.cert}\n${clientCertificate.key}` : '';
    const known = remembered.get(name);
    if (known) return known;
    last += 1;
    const made = { id: last, context: contextOf(authorities, clientCertificate) };
    remembered.set(name, made);
    return made;
  };
}

function contextOf(authorities: readonly string[], own?: ClientCertificate): SecureContext {
  // Given any, OpenSSL uses these alone.
  const ca = authorities.length > 0 ? [...getCACertificates('default'), ...authorities] : undefined;
  try {
    return createSecureContext({ minVersion: 'TLSv1.2', ...(ca && { ca }), ...own });
  } catch (error) {
    throw new OutboundError('tls', error);
  }
}
