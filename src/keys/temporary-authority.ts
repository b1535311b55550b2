/** An authority that lives as long as a demonstration or a test, and the certificates that it signs. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** PEM. */
export interface IssuedCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface Authority extends IssuedCertificate {
  /** For 127.0.0.1 and localhost, as that of the authority itself, unless other names are given. */
  issue(name: string, hosts?: readonly string[]): IssuedCertificate;
}

/** Without a name, it has one of its own. */
export function newAuthority(name = `strongroom ${randomBytes(8).toString('hex')}`): Authority {
  const issuer = newIdentity(name);
  const own = [isAuthority, serverNames];
  return {
    cert: certificate({ subject: issuer, issuer, extensions: own }),
    key: pkcs8(issuer),
    issue: (subjectName, hosts) => {
      const subject = newIdentity(subjectName);
      const names = hosts ? alternativeNames(hosts.map((host) => tag(0x82, host))) : serverNames;
      return {
        cert: certificate({ subject, issuer, extensions: [names] }),
        key: pkcs8(subject),
      };
    },
  };
}

interface NamedKeyPair {
  readonly name: Buffer;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

function newIdentity(name: string): NamedKeyPair {
  const commonName = sequence(oid(0x55, 0x04, 0x03), tag(0x0c, name));
  return {
    name: sequence(tag(0x31, commonName)),
    ...generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  };
}

function pkcs8({ privateKey }: NamedKeyPair): string {
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

interface CertificateDescription {
  readonly subject: NamedKeyPair;
  readonly issuer: NamedKeyPair;
  readonly extensions: readonly Buffer[];
}

/** PEM of what RFC 5280 section 4.1 describes, in DER. */
function certificate({ subject, issuer, extensions }: CertificateDescription): string {
  const algorithm = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02)); // ecdsa-with-SHA256
  const body = sequence(
    tag(0xa0, tag(0x02, Buffer.from([2]))), // version 3
    tag(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    issuer.name,
    sequence(tag(0x17, '250101000000Z'), tag(0x17, '491231235959Z')),
    subject.name,
    subject.publicKey.export({ type: 'spki', format: 'der' }),
    tag(0xa3, sequence(...extensions)),
  );
  const signature = sign('sha256', body, issuer.privateKey);
  const signed = tag(0x03, Buffer.concat([Buffer.from([0]), signature]));
  return pem('CERTIFICATE', sequence(body, algorithm, signed));
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

/** basicConstraints, critical: cA true. */
const isAuthority = sequence(
  oid(0x55, 0x1d, 0x13),
  tag(0x01, Buffer.from([0xff])),
  tag(0x04, sequence(tag(0x01, Buffer.from([0xff])))),
);

const serverNames = alternativeNames([
  tag(0x82, 'localhost'),
  tag(0x87, Buffer.from([127, 0, 0, 1])), // iPAddress
]);

function alternativeNames(names: readonly Buffer[]): Buffer {
  return sequence(oid(0x55, 0x1d, 0x11), tag(0x04, sequence(...names)));
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
