/** Certificates whose verification costs a client as much processor time as possible. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from 'node:crypto';

export interface ExpensiveChain {
  /** PEM: the server's own certificate first, each signed by the next one. */
  readonly cert: string;
  readonly key: string;
}

/** Each certificate has an RSA key of 3,072 bits, for which OpenSSL still takes exponents of any length. */
export function expensiveChain(length: number): ExpensiveChain {
  const key = keyWithLongExponent();
  const certificates = Array.from({ length }, (_, at) =>
    certificate(key, { subject: String(at), issuer: String(at + 1), isAuthority: at > 0 }),
  );
  return {
    cert: certificates.map((der) => pem('CERTIFICATE', der)).join(''),
    key: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** The exponents change places, so that to sign is cheap and to verify is not. */
function keyWithLongExponent(): KeyObject {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 3_072 });
  const { e: short = '', d: long = '', ...others } = privateKey.export({ format: 'jwk' });
  const swapped = { ...others, e: long, d: short, dp: short, dq: short };
  return createPrivateKey({ key: swapped, format: 'jwk' });
}

interface Names {
  readonly subject: string;
  readonly issuer: string;
  readonly isAuthority: boolean;
}

function certificate(key: KeyObject, { subject, issuer, isAuthority }: Names): Buffer {
  // sha256WithRSAEncryption
  const algorithm = sequence(
    oid(0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b),
    Buffer.from([5, 0]),
  );
  const basicConstraints = sequence(
    oid(0x55, 0x1d, 0x13),
    tag(0x04, sequence(isAuthority ? tag(0x01, Buffer.from([0xff])) : Buffer.alloc(0))),
  );
  const body = sequence(
    tag(0xa0, tag(0x02, Buffer.from([2]))),
    tag(0x02, Buffer.from(`\x01${subject}`)),
    algorithm,
    nameOf(issuer),
    sequence(tag(0x17, '250101000000Z'), tag(0x17, '491231235959Z')),
    nameOf(subject),
    createPublicKey(key as never).export({ type: 'spki', format: 'der' }),
    tag(0xa3, sequence(basicConstraints)),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', body, key)]);
  return sequence(body, algorithm, tag(0x03, signature));
}

function nameOf(text: string): Buffer {
  return sequence(tag(0x31, sequence(oid(0x55, 0x04, 0x03), tag(0x0c, text))));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tag(0x30, Buffer.concat(parts));
}

function oid(...bytes: readonly number[]): Buffer {
  return tag(0x06, Buffer.from(bytes));
}

function tag(number: number, content: Buffer | string): Buffer {
  const bytes = Buffer.from(content as string);
  const { length } = bytes;
  const size = length < 128 ? [length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([number, ...size]), bytes]);
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
