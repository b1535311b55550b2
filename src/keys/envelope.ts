/** The one byte format of stored secrets. */
import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import type { Brand } from '../base/brand.ts';
import { integrityError, type VaultError } from '../base/errors.ts';
import { jsonText } from '../base/json.ts';
import type { Random } from '../base/random.ts';
import { Secret } from '../base/secret.ts';
import { type AeadKey, nonceBytes, open, seal, tagBytes } from './aead.ts';

/**
 * Bytes that are ciphertext, made only by {@link sealText}:
 * format version (1) ‖ key version (4, big-endian) ‖ nonce (24) ‖ ciphertext ‖ tag (16).
 */
export type Sealed = Brand<Uint8Array, 'Sealed'>;

/** The place a secret belongs to. Its bytes open nowhere else. */
export interface Binding {
  readonly tenant: string;
  /** Id of the row that owns the secret. */
  readonly id: string;
  /** A name for the operator's errors, if the id is chosen by a caller. */
  readonly alias?: string;
  /** Name of the attribute within that row. */
  readonly field: string;
  /** The rest of the row as a well-formed string, if the secret may open only while the row is unaltered. */
  readonly row?: string;
}

/** Keys of one purpose, by version. */
export interface VersionedKeys {
  readonly purpose: string;
  /** The version that seals. */
  readonly activeVersion: number;
  /** `undefined` for a version that is destroyed or never was. */
  at(version: number): AeadKey | undefined;
}

/**
 * The permission to open, which names the caller or the purpose. All code that turns ciphertext into a value takes a
 * grant and reports to it what it opened.
 */
export type OpeningGrant = Brand<OpeningAccount, 'OpeningGrant'>;

/** Records what was opened. */
export interface OpeningAccount {
  opened(what: OpenedBinding): void;
}

/** Only for `src/rules`, which knows callers and the jobs of the vault. A test of the sources enforces this. */
export function openingGrant(account: OpeningAccount): OpeningGrant {
  return account as OpeningGrant;
}

/** An opened value, as the log can name it. */
export type OpenedBinding = Pick<Binding, 'id' | 'field'>;

/** Keys that open; see {@link openingKeys}. */
export type OpeningKeys = Brand<
  { readonly keys: VersionedKeys; readonly grant: OpeningGrant },
  'OpeningKeys'
>;

/** The keys as {@link openText} takes them. */
export function openingKeys(keys: VersionedKeys, grant: OpeningGrant): OpeningKeys {
  return { keys, grant } as OpeningKeys;
}

const plaintextBytesMax = 64 * 1024 * 1024;

const formatVersion = 1;
const nonceStart = 5;
const ciphertextStart = nonceStart + nonceBytes;

/** What sealing adds to the length of the plaintext. */
export const sealedOverheadBytes = ciphertextStart + tagBytes;

/** Seals a string, or its UTF-8 bytes, under the active key, bound to its place. */
export function sealText(
  keys: VersionedKeys,
  binding: Binding,
  text: string | Uint8Array,
  random: Random,
): Sealed {
  const plaintext = utf8Of(text);
  const version = keys.activeVersion;
  const key = keys.at(version);
  assert(key !== undefined, 'the active version has a key');
  const nonce = random(nonceBytes);
  const associatedData = associatedDataOf(keys.purpose, version, binding);
  const ciphertext = seal(key, { nonce, plaintext, associatedData });
  const sealed = Buffer.allocUnsafe(ciphertextStart + ciphertext.length);
  sealed[0] = formatVersion;
  sealed.writeUInt32BE(version, 1);
  sealed.set(nonce, nonceStart);
  sealed.set(ciphertext, ciphertextStart);
  return sealed as Uint8Array as Sealed;
}

/**
 * Opens a value that {@link sealText} made with the same binding. Accepts any bytes, because stored data is not
 * trusted until it has been opened.
 * @throws VaultError `integrity` for everything else: altered, truncated, moved, or sealed under another key.
 */
export function openText(
  { keys, grant }: OpeningKeys,
  binding: Binding,
  sealed: Uint8Array,
): Secret<string> {
  const plaintext = opened(keys, binding, sealed);
  grant.opened(binding);
  return new Secret(plaintext.toString('utf8'));
}

/**
 * The same value sealed again, under the active key and for a place of its own. It is not decoded.
 * @throws VaultError `integrity` like {@link openText}.
 */
export function resealText(
  { keys, grant }: OpeningKeys,
  { from, to }: { readonly from: Binding; readonly to: Binding },
  { sealed, random }: { readonly sealed: Uint8Array; readonly random: Random },
): Sealed {
  const plaintext = opened(keys, from, sealed);
  grant.opened(from);
  const again = sealText(keys, to, plaintext, random);
  plaintext.fill(0);
  return again;
}

/**
 * Returns no value, and so takes no grant.
 * @throws VaultError `integrity` like {@link openText}.
 */
export function requireAuthentic(keys: VersionedKeys, binding: Binding, sealed: Uint8Array): void {
  opened(keys, binding, sealed);
}

/**
 * True if exactly this string was sealed. The caller knows it already.
 * @throws VaultError `integrity` like {@link openText}.
 */
export function sealsText(
  keys: VersionedKeys,
  binding: Binding,
  { sealed, text }: { readonly sealed: Uint8Array; readonly text: string },
): boolean {
  return opened(keys, binding, sealed).equals(Buffer.from(text, 'utf8'));
}

function opened(keys: VersionedKeys, binding: Binding, sealed: Uint8Array): Buffer {
  const version = keyVersionOf(sealed);
  if (version === undefined) throw damaged(binding, 'it does not have the form of a sealed value');
  const key = keys.at(version);
  if (key === undefined) throw damaged(binding, `there is no ${keys.purpose} key ${version}`);
  const plaintext = open(key, {
    nonce: sealed.subarray(nonceStart, ciphertextStart),
    ciphertext: sealed.subarray(ciphertextStart),
    associatedData: associatedDataOf(keys.purpose, version, binding),
  });
  if (plaintext === undefined) throw damaged(binding, 'it is not authentic for this place');
  return plaintext;
}

/** The version of the key that a value claims to be sealed under; `undefined` for another format. */
export function keyVersionOf(sealed: Uint8Array): number | undefined {
  if (sealed.length < sealedOverheadBytes || sealed[0] !== formatVersion) return undefined;
  return new DataView(sealed.buffer, sealed.byteOffset).getUint32(1);
}

function utf8Of(text: string | Uint8Array): Uint8Array {
  // Any other string would change when it is opened again.
  assert(typeof text === 'string' ? text.isWellFormed() : isUtf8(text), 'a text is well-formed');
  const bytes = typeof text === 'string' ? Buffer.from(text, 'utf8') : text;
  assert(bytes.length <= plaintextBytesMax, `a text has at most ${plaintextBytesMax} bytes`);
  return bytes;
}

/**
 * One JSON array, which ends where its bracket is closed, and after it the row. JSON writes half a
 * surrogate pair as an escape, so no two bindings have the same bytes.
 */
function associatedDataOf(purpose: string, keyVersion: number, binding: Binding): Buffer {
  const { tenant, id, field, row = '' } = binding;
  const owner = `${jsonText(purpose)},${jsonText(tenant)},${jsonText(id)},${jsonText(field)}`;
  return Buffer.from(`["strongroom",${formatVersion},${owner},${keyVersion}]${row}`, 'utf8');
}

function damaged(binding: Binding, reason: string): VaultError {
  return integrityError(
    `${binding.field} of ${binding.alias ?? binding.id}, tenant ${binding.tenant}: ${reason}`,
  );
}
