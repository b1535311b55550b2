/** A client certificate with its private key, with which a proxy authenticates to its destination. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { type Instant, parseInstant } from '../base/clock.ts';

const certificateForm = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** What may be shown of a certificate. */
export interface CertificateSummary {
  /** The common name, or the whole subject of a certificate without one. */
  readonly subject: string;
  readonly expiresAt: Instant;
}

/** Parses the first certificate of a PEM string, the client's own; `undefined` if any part of it is invalid. */
export function readCertificate(pem: string): X509Certificate | undefined {
  const texts = pem.match(certificateForm) ?? [];
  if (pem.replace(certificateForm, '').trim() !== '') return undefined;
  try {
    const [first] = texts.map((text) => new X509Certificate(text));
    // An end date that cannot be represented is refused here, before it has to be shown.
    if (first) summaryOfCertificate(first);
    return first;
  } catch {
    return undefined;
  }
}

/** The largest RSA key, in bits. A signature by a key of 16,384 bits blocks the thread for a second or more. */
export const rsaBitsMax = 4_096;
/** In PKCS #8. An RSA key of the maximum size has 2,375, and one of more than two primes may have more. */
const keyBytesMax = 2_560;

/**
 * Parses a private key in PEM; `undefined` also for one that needs a passphrase, and for one with which a signature
 * would take too long, because every handshake with the destination makes one.
 */
export function readPrivateKey(pem: string): KeyObject | undefined {
  try {
    const key = createPrivateKey({ key: pem, format: 'pem' });
    return isFast(key) ? key : undefined;
  } catch {
    return undefined;
  }
}

function isFast(key: KeyObject): boolean {
  if (key.export({ type: 'pkcs8', format: 'der' }).length > keyBytesMax) return false;
  const { asymmetricKeyType: type, asymmetricKeyDetails } = key;
  if (type === 'ec' || type === 'ed25519' || type === 'ed448') return true;
  return type === 'rsa' && (asymmetricKeyDetails?.modulusLength ?? 0) <= rsaBitsMax;
}

export function summaryOfCertificate(certificate: X509Certificate): CertificateSummary {
  const { subject, validToDate } = certificate;
  const [, name] = /^CN=(.+)$/m.exec(subject) ?? [];
  return { subject: name ?? subject, expiresAt: parseInstant(validToDate.getTime()) };
}
