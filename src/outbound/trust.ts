/** TLS trust of connections to other hosts, and the certificate that the vault presents to them. */
import {
  createSecureContext,
  DEFAULT_CIPHERS,
  getCACertificates,
  type SecureContext,
} from 'node:tls';
import { LruCache } from '../base/lru-cache.ts';
import { noRenegotiation } from '../base/renegotiation.ts';
import { OutboundError } from './error.ts';

/** PEM. */
export interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface TrustOptions {
  /** PEM certificates that are trusted in addition to the public authorities. */
  readonly authorities?: readonly string[] | undefined;
}

export interface Credentials {
  /** A distinct id for each client certificate. */
  readonly id: number;
  readonly context: SecureContext;
}

/** @throws OutboundError `tls` if the client certificate cannot be used. */
export type Trust = (clientCertificate?: ClientCertificate) => Credentials;

/** Room for several hundred pairs of certificate and key. */
const rememberedCharactersMax = 1_000_000;

/**
 * Trusts the public authorities and the given ones. A context is created on first use and then reused, because
 * reading all authorities takes milliseconds.
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

/**
 * No key exchange over finite fields (DHE): the host chooses the numbers, and one handshake with numbers of 10,000 bits
 * blocks the thread for more than half a second. The handshake computes them before the certificate is verified.
 */
const ciphers = `${DEFAULT_CIPHERS}:!kDHE`;

const tlsOptions = { minVersion: 'TLSv1.2', ciphers, secureOptions: noRenegotiation } as const;

function contextOf(authorities: readonly string[], own?: ClientCertificate): SecureContext {
  // If any are given, OpenSSL uses only these.
  const ca = authorities.length > 0 ? [...getCACertificates('default'), ...authorities] : undefined;
  try {
    return createSecureContext({ ...tlsOptions, ...(ca && { ca }), ...own });
  } catch (error) {
    throw new OutboundError('tls', error);
  }
}
