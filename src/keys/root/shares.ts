/** Shares of a root key (Shamir's secret sharing): enough of them give the key, and fewer say nothing about it. */
import assert from 'node:assert/strict';
import { createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { combine, split } from 'shamir-secret-sharing';
import { sha256 } from '../digest.ts';
import { localKeyId } from './local-key.ts';
import { RootKeyError } from './root-key.ts';

const prefix = 'srs1_';
const keyBytes = 32;
/** The key and the point of the share. */
const shareBytes = keyBytes + 1;
const setBytes = 4;
const checksumBytes = 4;

/** GF(2^8) has 255 points besides the one of the key. */
const sharesMax = 255;

/** How many shares are made, and how many of them give the key. */
export interface ShareCount {
  readonly shares: number;
  readonly threshold: number;
}

/** @throws RootKeyError unless 2 ≤ threshold ≤ shares ≤ 255. */
export function requireShareCount({ shares, threshold }: ShareCount): void {
  const areWhole = Number.isInteger(shares) && Number.isInteger(threshold);
  if (areWhole && threshold >= 2 && threshold <= shares && shares <= sharesMax) return;
  throw new RootKeyError(
    `a root key needs a threshold of at least 2, and at least as many shares, up to ${sharesMax}`,
  );
}

/**
 * Splits a key of 32 bytes. A share is `srs1_` and the base64url of threshold (1 byte) ‖ set (4) ‖ share (33) ‖
 * checksum (4). The set is the id of the key, a digest that the key itself keys; the checksum is the start of the
 * SHA-256 of everything before it, against typing errors.
 */
export async function splitRootKey(key: KeyObject, count: ShareCount): Promise<string[]> {
  requireShareCount(count);
  const bytes = key.export();
  const shares = await split(new Uint8Array(bytes), count.shares, count.threshold);
  bytes.fill(0);
  return shares.map((share) => {
    const body = Buffer.concat([Buffer.of(count.threshold), setOf(key), share]);
    return prefix + Buffer.concat([body, checksumOf(body)]).toString('base64url');
  });
}

interface Share {
  readonly threshold: number;
  readonly set: Buffer;
  readonly bytes: Buffer;
}

const shareForm = /^srs1_[A-Za-z0-9_-]{56}$/;

function parseShare(text: string): Share {
  const bytes = Buffer.from(text.slice(prefix.length), 'base64url');
  const body = bytes.subarray(0, -checksumBytes);
  const isIntact = timingSafeEqual(checksumOf(body), sizedChecksum(bytes));
  if (!shareForm.test(text) || !isIntact) {
    throw new RootKeyError('this is not a share of a root key, or it has a typing error');
  }
  return {
    threshold: body.readUInt8(0),
    set: body.subarray(1, 1 + setBytes),
    bytes: body.subarray(1 + setBytes),
  };
}

function sizedChecksum(bytes: Buffer): Buffer {
  const checksum = Buffer.alloc(checksumBytes);
  bytes.subarray(-checksumBytes).copy(checksum);
  return checksum;
}

/**
 * How the database names a key of which there are shares: the id of the key and the threshold. A server knows from it
 * how many shares it needs before the first one is given.
 */
export function shareKeyId(key: KeyObject, threshold: number): string {
  return `${localKeyId(key)}/${threshold}`;
}

const keyIdForm = /^[0-9a-f]{8}\/([1-9][0-9]{0,2})$/;

/** How many shares give the key of that id; `undefined` for the id of a key of another source. */
export function thresholdOf(keyId: string): number | undefined {
  const [, digits] = keyIdForm.exec(keyId) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** What is known after a share was added. */
export interface ShareProgress {
  readonly given: number;
  readonly threshold: number;
  /** Of the key that the shares are of. */
  readonly keyId: string;
  /** From the last needed share on. */
  readonly key: KeyObject | undefined;
}

/** Shares that were given so far. It prints and serializes as nothing. */
export class ShareCollection {
  #shares: Share[] = [];

  get given(): number {
    return this.#shares.length;
  }

  /**
   * @param expected the ids of the keys whose shares are accepted; any key unless given.
   * @throws RootKeyError for text that is not a share, for a share that was given before, for one of another key, and
   * when the shares do not give a key: then all of them have to be given again.
   */
  async add(text: string, expected?: readonly string[]): Promise<ShareProgress> {
    const share = parseShare(text.trim());
    const [first = share] = this.#shares;
    const keyId = keyIdOf(share);
    if (expected !== undefined && !expected.includes(keyId)) {
      throw new RootKeyError('this share is of another root key than that of this vault');
    }
    if (keyId !== keyIdOf(first)) {
      throw new RootKeyError('this share is of another root key than those that were given before');
    }
    if (this.#shares.some(({ bytes }) => pointOf(bytes) === pointOf(share.bytes))) {
      throw new RootKeyError('this share was given before');
    }
    this.#shares.push(share);
    const { threshold } = share;
    const given = this.#shares.length;
    const key = given < threshold ? undefined : await this.#combined(share.set);
    return { given, threshold, keyId, key };
  }

  async #combined(set: Buffer): Promise<KeyObject> {
    const shares = this.#shares.map(({ bytes }) => new Uint8Array(bytes));
    this.#shares = [];
    const bytes = await combine(shares);
    const key = createSecretKey(bytes);
    for (const secret of [bytes, ...shares]) secret.fill(0);
    if (setOf(key).equals(set)) return key;
    throw new RootKeyError(
      'these shares do not give a root key: one of them is wrong; give all again',
    );
  }
}

function keyIdOf({ set, threshold }: Share): string {
  return `${set.toString('hex')}/${threshold}`;
}

/** Two shares of one point cannot be combined. */
function pointOf(bytes: Buffer): number {
  const point = bytes.at(-1);
  assert(point !== undefined && bytes.length === shareBytes);
  return point;
}

/** The same for all shares of one key, whatever their number. */
function setOf(key: KeyObject): Buffer {
  return Buffer.from(localKeyId(key), 'hex');
}

function checksumOf(body: Uint8Array): Buffer {
  return sha256(Buffer.from(body).toString('latin1')).subarray(0, checksumBytes);
}
