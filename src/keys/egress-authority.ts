/** The certificate authority of a tenant, under which the vault opens the connections of the tenant's own programs. */
import assert from 'node:assert/strict';
import {
  createECDH,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  webcrypto,
} from 'node:crypto';
import { day, hour, type Instant } from '../base/clock.ts';
import { hmacSha256, sha256 } from './digest.ts';
import type { Keyring } from './keyring.ts';
import { encodeParts } from './parts.ts';
import type { PemPair } from './tls-pair.ts';

export interface EgressAuthority {
  /** PEM, for programs to trust. It is valid for the hosts that it names and for no other. */
  readonly certificate: string;
  /** A certificate for one host, with its key. */
  issue(host: string, now: Instant): Promise<PemPair>;
}

const leafMs = day;
/** Clocks of clients may be behind. */
const earlierMs = hour;
const authorityMs = 365 * day;
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const curve = 'prime256v1';
const nameConstraintsId = '2.5.29.30';

/**
 * The key is derived from the tenant's, so it is stored nowhere, and is the same on all servers.
 * @param hosts in lower case; a wildcard stands for every host below its parent.
 */
export async function egressAuthority(
  keyring: Keyring,
  {
    hosts,
    tenant,
    now,
  }: { readonly hosts: readonly string[]; readonly tenant: string; readonly now: Instant },
): Promise<EgressAuthority> {
  assert(hosts.length > 0, 'an authority without names is valid for all names');
  const { certificateModules } = await import('./certificate-modules.ts');
  const { asn, AsnConvert, x509 } = certificateModules;
  const name = `CN=Strongroom egress ${tenant}`;
  const keys = await keyPairOf(derivedKey(keyring));
  const permitted = constrainedTo(hosts).map(
    (dNSName) => new asn.GeneralSubtree({ base: new asn.GeneralName({ dNSName }) }),
  );
  // Constraints of names say nothing of addresses, so these are excluded.
  const excluded = ['0.0.0.0/0', '::/0'].map(
    (iPAddress) => new asn.GeneralSubtree({ base: new asn.GeneralName({ iPAddress }) }),
  );
  const constraints = new asn.NameConstraints({
    permittedSubtrees: new asn.GeneralSubtrees(permitted),
    excludedSubtrees: new asn.GeneralSubtrees(excluded),
  });
  const own = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: sha256(hosts.join(' ')).subarray(0, 8).toString('hex'),
    name,
    notBefore: new Date(now - earlierMs),
    notAfter: new Date(now + authorityMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
        true,
      ),
      new x509.Extension(nameConstraintsId, true, AsnConvert.serialize(constraints)),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  const certificate = own.toString('pem');
  return {
    certificate,
    issue: async (host, at) => {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: curve });
      const leaf = await x509.X509CertificateGenerator.create({
        subject: `CN=${host.length > 64 ? 'strongroom' : host}`,
        issuer: name,
        notBefore: new Date(at - earlierMs),
        notAfter: new Date(at + leafMs),
        signingAlgorithm: algorithm,
        publicKey: publicKey.export({ type: 'spki', format: 'der' }),
        signingKey: keys.privateKey,
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
          new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: host }]),
          await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
        ],
      });
      return {
        cert: leaf.toString('pem'),
        key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      };
    },
  };
}

function constrainedTo(hosts: readonly string[]): readonly string[] {
  return [...new Set(hosts.map((host) => host.replace(/^\*\./, '')))].toSorted();
}

/** A private key of P-256: a number below the order of the curve, which nearly every 32 bytes are. */
function derivedKey(keyring: Keyring): KeyObject {
  const ecdh = createECDH(curve);
  for (let attempt = 0; ; attempt += 1) {
    const parts = ['key for', 'egress authority', String(attempt)];
    const secret = hmacSha256(keyring.secret('row'), encodeParts(parts));
    try {
      ecdh.setPrivateKey(secret);
    } catch {
      continue;
    }
    const point = ecdh.getPublicKey();
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((one) =>
      one.toString('base64url'),
    );
    const jwk = { kty: 'EC', crv: 'P-256', d: secret.toString('base64url'), x, y };
    secret.fill(0);
    return createPrivateKey({ key: jwk as webcrypto.JsonWebKey, format: 'jwk' });
  }
}

async function keyPairOf(key: KeyObject): Promise<webcrypto.CryptoKeyPair> {
  const { kty, crv, d, x, y } = key.export({ format: 'jwk' });
  const { subtle } = webcrypto;
  const jwk = { kty, crv, x, y } as webcrypto.JsonWebKey;
  const [privateKey, publicKey] = await Promise.all([
    subtle.importKey('jwk', { ...jwk, d: d ?? '' }, algorithm, false, ['sign']),
    subtle.importKey('jwk', jwk, algorithm, true, ['verify']),
  ]);
  return { privateKey, publicKey };
}
