/** Encrypting for the vault as a browser does, and as the public clients do. */
import { CompactEncrypt, importJWK, importSPKI } from 'jose';

/** As the response to `POST /keys` has it. */
export interface EncryptionKey {
  readonly id: string;
  readonly public_key_pem: string;
}

/** Of the protected header; what is absent is as clients write it. */
export interface JweHeader {
  readonly alg?: string;
  readonly enc?: string;
  readonly kid?: string;
  readonly exp?: unknown;
  readonly jti?: unknown;
}

/** The bare 32 bytes are an X25519 key, as the public clients read it. */
export async function publicKeyOf(
  { public_key_pem }: Pick<EncryptionKey, 'public_key_pem'>,
  alg: string,
) {
  const bytes = Buffer.from(public_key_pem.replace(/-----[A-Z ]+-----/g, ''), 'base64');
  if (bytes.length !== 32) return importSPKI(public_key_pem, alg);
  return importJWK({ kty: 'OKP', crv: 'X25519', x: bytes.toString('base64url') }, alg);
}

export async function encrypted(
  key: EncryptionKey,
  text: string,
  { kid = key.id, enc = 'A256GCM', ...header }: JweHeader = {},
): Promise<string> {
  const isRsa = key.public_key_pem.length > 200;
  const alg = header.alg ?? (isRsa ? 'RSA-OAEP-256' : 'ECDH-ES');
  return new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader({ ...header, alg, enc, kid })
    .encrypt(await publicKeyOf(key, alg));
}
