/** Bytes and their texts, by what every runtime has. */
import { ConfigurationError } from './errors.ts';

type Bytes = Uint8Array<ArrayBuffer>;

/** Strings in UTF-8. */
export function bytesOf(value: string | Uint8Array | ArrayBuffer): Bytes {
  return typeof value === 'string' ? new TextEncoder().encode(value) : new Uint8Array(value);
}

/** `undefined` unless it is base64 in its one spelling. */
export function fromBase64(text: string): Bytes | undefined {
  try {
    const binary = atob(text);
    if (btoa(binary) !== text) return undefined;
    return Uint8Array.from(binary, (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** The DER of a public key in PEM. */
export function fromPem(pem: string): Bytes | undefined {
  const [, base64] =
    /^\s*-----BEGIN PUBLIC KEY-----([\w+/=\s]+)-----END PUBLIC KEY-----\s*$/.exec(pem) ?? [];
  return base64 === undefined ? undefined : fromBase64(base64.replace(/\s/g, ''));
}

/** WebCrypto. @throws ConfigurationError in pages that were not loaded through TLS, which do not have it. */
export function subtle(): SubtleCrypto {
  const { subtle: found } = crypto as Partial<Crypto>;
  if (found) return found;
  throw new ConfigurationError('Verifying needs WebCrypto: load the page through https.');
}
