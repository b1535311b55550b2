/** A self-signed certificate for 127.0.0.1 and localhost, made without any tool outside Node. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** PEM, for a client that is to trust it. */
  readonly cert: string;
}

/** Writes `tls.crt` and `tls.key` into a directory. */
export function writeCertificate(directory: string): CertificateFiles {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cert = pem('CERTIFICATE', certificate(publicKey, privateKey));
  const certFile = join(directory, 'tls.crt');
  const keyFile = join(directory, 'tls.key');
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  return { certFile, keyFile, cert };
}

/** RFC 5280 section 4.1, in DER. */
function certificate(publicKey: KeyObject, privateKey: KeyObject): Buffer {
  const algorithm = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02)); // ecdsa-with-SHA256
  const name = sequence(tag(0x31, sequence(oid(0x55, 0x04, 0x03), tag(0x0c, 'strongroom test'))));
  const names = sequence(
    tag(0x82, 'localhost'),
    tag(0x87, Buffer.from([127, 0, 0, 1])), // iPAddress
  );
  const subjectAltName = sequence(oid(0x55, 0x1d, 0x11), tag(0x04, names));
  const body = sequence(
    tag(0xa0, tag(0x02, Buffer.from([2]))), // version 3
    tag(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    name,
    sequence(tag(0x17, '250101000000Z'), tag(0x17, '491231235959Z')),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tag(0xa3, sequence(subjectAltName)),
  );
  const signature = sign('sha256', body, privateKey);
  return sequence(body, algorithm, tag(0x03, Buffer.concat([Buffer.from([0]), signature])));
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
