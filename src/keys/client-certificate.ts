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

/** Parses a private key in PEM; `undefined` also for one that needs a passphrase. */
export function readPrivateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey({ key: pem, format: 'pem' });
  } catch {
    return undefined;
  }
}

export function summaryOfCertificate(certificate: X509Certificate): CertificateSummary {
  const { subject, validToDate } = certificate;
  const [, name] = /^CN=(.+)$/m.exec(subject) ?? [];
  return { subject: name ?? subject, expiresAt: parseInstant(validToDate.getTime()) };
}
