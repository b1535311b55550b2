/** Placeholders: what a program holds in the place of a value. Only the vault can make one, for one application. */
import { createSecretKey, type KeyObject } from 'node:crypto';
import { base58 } from '@scure/base';
import { luhnValid } from '../base/checks.ts';
import { type Instant, parseInstant } from '../base/clock.ts';
import type { ApplicationId, TokenId } from '../base/ids.ts';
import type { Random } from '../base/random.ts';
import { AeadKey, nonceBytes, open, seal } from './aead.ts';
import { hmacSha256 } from './digest.ts';
import type { Keyring } from './keyring.ts';
import { encodeParts } from './parts.ts';

/** What a placeholder stands for. */
export interface PlaceholderTarget {
  readonly tokenId: TokenId;
  /** Of the data, where that is an object. */
  readonly property: string | undefined;
}

export interface OpenedPlaceholder extends PlaceholderTarget {
  /** Absent for one that does not end by itself. */
  readonly expiresAt: Instant | undefined;
}

/** Base58 of a longer string takes too long. A token id has up to 1,200 bytes, and most have 36. */
export const placeholderTextBytesMax = 500;

/** Finds what may be a placeholder of either form. A number that is part of a longer one is none. */
export const placeholderPattern =
  /sr_[1-9A-HJ-NP-Za-km-z]{60,800}(?![0-9A-Za-z])|(?<![0-9])9999[0-9]{12}(?![0-9])/g;

const prefix = 'sr_';
/** ISO/IEC 7812-1: 9 is for national use, and no country has the code 999. */
const numberPrefix = '9999';
const numberDigits = 11;

/** Everything about the target as one short string. */
function textOf({ tokenId, property, expiresAt }: OpenedPlaceholder): string {
  return JSON.stringify([tokenId, property ?? 0, expiresAt ?? 0]);
}

/** False for a target whose placeholder would be too long. */
export function fitsPlaceholder(target: OpenedPlaceholder): boolean {
  return Buffer.byteLength(textOf(target)) <= placeholderTextBytesMax;
}

/** Two placeholders for one target have nothing in common. */
export function newPlaceholder(
  keyring: Keyring,
  application: ApplicationId,
  target: OpenedPlaceholder & { readonly random: Random },
): string {
  const nonce = target.random(nonceBytes);
  const plaintext = Buffer.from(textOf(target));
  const associatedData = boundTo(application);
  const sealed = seal(sealingKeyOf(keyring), { nonce, plaintext, associatedData });
  return prefix + base58.encode(Buffer.concat([nonce, sealed]));
}

/** `undefined` unless this tenant's vault made it for this application. */
export function openPlaceholder(
  keyring: Keyring,
  application: ApplicationId,
  placeholder: string,
): OpenedPlaceholder | undefined {
  const bytes = decoded(placeholder.slice(prefix.length));
  if (bytes === undefined || bytes.length <= nonceBytes) return undefined;
  const text = open(sealingKeyOf(keyring), {
    nonce: bytes.subarray(0, nonceBytes),
    ciphertext: bytes.subarray(nonceBytes),
    associatedData: boundTo(application),
  });
  if (text === undefined) return undefined;
  const [tokenId, property, end] = JSON.parse(text.toString()) as [TokenId, string | 0, number];
  return {
    tokenId,
    property: property === 0 ? undefined : property,
    expiresAt: end === 0 ? undefined : parseInstant(end),
  };
}

/**
 * The placeholder of the target that has the form of a card number and is nobody's. It is always the same one, and is
 * found by making those of all targets that are possible.
 */
export function placeholderNumber(
  keyring: Keyring,
  application: ApplicationId,
  { tokenId, property }: PlaceholderTarget,
): string {
  const parts = [application, tokenId, property === undefined ? '' : `.${property}`];
  const digest = hmacSha256(numberKeyOf(keyring), encodeParts(parts));
  const digits = String(digest.readUIntBE(0, 6) % 10 ** numberDigits).padStart(numberDigits, '0');
  const body = numberPrefix + digits;
  return Array.from({ length: 10 }, (_, digit) => `${body}${digit}`).find(luhnValid) ?? body;
}

/** True for the form of digits, whose check digit may be wrong. */
export function isPlaceholderNumber(text: string): boolean {
  return text.startsWith(numberPrefix);
}

function decoded(text: string): Uint8Array | undefined {
  try {
    return base58.decode(text);
  } catch {
    return undefined;
  }
}

function boundTo(application: ApplicationId): Buffer {
  return encodeParts(['placeholder', application]);
}

const sealingKeys = new WeakMap<Keyring, AeadKey>();

function sealingKeyOf(keyring: Keyring): AeadKey {
  const known = sealingKeys.get(keyring);
  if (known) return known;
  const key = new AeadKey(derivedBytes(keyring, 'placeholder'));
  sealingKeys.set(keyring, key);
  return key;
}

const numberKeys = new WeakMap<Keyring, KeyObject>();

function numberKeyOf(keyring: Keyring): KeyObject {
  const known = numberKeys.get(keyring);
  if (known) return known;
  const key = createSecretKey(derivedBytes(keyring, 'placeholder number'));
  numberKeys.set(keyring, key);
  return key;
}

/** Of a key for one use, from a key of the tenant that is not rotated. */
function derivedBytes(keyring: Keyring, use: string): Buffer {
  return hmacSha256(keyring.secret('cursor'), encodeParts(['key for', use]));
}
