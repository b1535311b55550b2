/** Checks whether a certificate and a private key belong together, before Node fails with its own message. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

export interface PemPair {
  readonly cert: string;
  readonly key: string;
}

export interface PairFlaw {
  /** Which of the two files it is about. */
  readonly part: keyof PemPair;
  /** Follows the name of the file's variable. */
  readonly problem: string;
}

const certificateForm = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const keyForm = /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/;
const encryptedForm = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m;

/** What is wrong with the pair, `undefined` when nothing is. It quotes neither of them. */
export function checkTlsPair({ cert, key }: PemPair): PairFlaw | undefined {
  const chain = certificatesOf(cert);
  const isKey = keyForm.test(key);
  if (chain === undefined && keyForm.test(cert)) {
    return !isKey && certificatesOf(key)
      ? flaw('cert', 'names the private key, and STRONGROOM_TLS_KEY the certificate: swap them')
      : flaw('cert', 'names a file with a private key; the certificate belongs there');
  }
  if (chain === undefined) return flaw('cert', 'names a file that is not a certificate in PEM');
  if (encryptedForm.test(key)) {
    return flaw('key', 'names a private key that needs a passphrase; store it without one');
  }
  if (!isKey && certificatesOf(key)) {
    return flaw('key', 'names a file with a certificate; the private key belongs there');
  }
  const parsed = isKey ? privateKeyOf(key) : undefined;
  if (!parsed) return flaw('key', 'names a file that is not a private key in PEM');
  return matchOf(chain, parsed);
}

/** When the certificate that clients see ends, in milliseconds. */
export function certificateEnd(cert: string): number {
  return new X509Certificate(cert).validToDate.getTime();
}

function matchOf(chain: readonly X509Certificate[], key: KeyObject): PairFlaw | undefined {
  const matching = chain.findIndex((certificate) => certificate.checkPrivateKey(key));
  if (matching === 0) return undefined;
  return matching > 0
    ? flaw('cert', 'names a chain in which the certificate of the server is not the first')
    : flaw('key', 'names a key that does not belong to the certificate in STRONGROOM_TLS_CERT');
}

function certificatesOf(text: string): readonly X509Certificate[] | undefined {
  const blocks = text.match(certificateForm);
  try {
    return blocks?.map((block) => new X509Certificate(block));
  } catch {
    return undefined;
  }
}

function privateKeyOf(text: string): KeyObject | undefined {
  try {
    return createPrivateKey(text);
  } catch {
    return undefined;
  }
}

function flaw(part: keyof PemPair, problem: string): PairFlaw {
  return { part, problem };
}

/** When a certificate in PEM ends, in milliseconds since 1970. */
export function endOfCertificate(pem: string): number {
  return new X509Certificate(pem).validToDate.getTime();
}
