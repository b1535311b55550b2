/** The certificate authorities that an operator trusts, in a file of PEM. */
import { X509Certificate } from 'node:crypto';
import { invalid } from '../base/errors.ts';

const begin = '-----BEGIN CERTIFICATE-----';
const block = new RegExp(`${begin}[^-]*-----END CERTIFICATE-----`, 'g');

/**
 * Each certificate by itself. What is between them, as some tools write it, is left out.
 * @throws VaultError `validation_failed` without one, and when one of them is broken.
 */
export function parseAuthorities(pem: string): readonly string[] {
  const certificates = pem.match(block) ?? [];
  const areAll = pem.split(begin).length - 1 === certificates.length;
  if (certificates.length > 0 && areAll && certificates.every(isCertificate)) return certificates;
  throw invalid('authorities', 'names a file that does not hold certificates in PEM');
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
