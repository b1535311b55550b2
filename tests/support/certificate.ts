/** Certificates for 127.0.0.1 and localhost, self-signed, made by nothing outside Node. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newAuthority } from '../../src/keys/temporary-authority.ts';

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** PEM, for a client that is to trust it. */
  readonly cert: string;
}

/** Writes `tls.crt` and `tls.key` into a directory. */
export function writeCertificate(directory: string): CertificateFiles {
  const { cert, key } = newAuthority('strongroom test');
  const certFile = join(directory, 'tls.crt');
  const keyFile = join(directory, 'tls.key');
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key, { mode: 0o600 });
  return { certFile, keyFile, cert };
}
