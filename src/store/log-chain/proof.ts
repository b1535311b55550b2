/** The proof that the vault wrote a block: an attacker who can only write to the database cannot create one. */
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { TenantId } from '../../base/ids.ts';
import type { LogBlock } from './block.ts';

/** The key of a tenant under which blocks are proven now. */
export interface Prover {
  readonly tenant_id: TenantId;
  readonly version: number;
  readonly key: KeyObject;
}

/** Everything that the searched columns do not follow from; above all the place, so that a copy proves nothing. */
type Proven = Pick<
  LogBlock,
  'tenant_id' | 'stream_id' | 'first_seq' | 'last_seq' | 'hash' | 'body'
>;

/** The version of the key, a dot, and base64url of HMAC-SHA-256 over the block. */
export function proveBlock({ version, key }: Omit<Prover, 'tenant_id'>, block: Proven): string {
  const { tenant_id, stream_id, first_seq, last_seq, hash, body } = block;
  const place = ['strongroom log block', 1, tenant_id, stream_id, first_seq, last_seq, hash];
  const text = `${JSON.stringify(place)}\n${body}`;
  return `${version}.${createHmac('sha256', key).update(text).digest('base64url')}`;
}

/** @param keyAt the key of a version of the tenant that the block names. */
export function isProven(
  block: Proven & Pick<LogBlock, 'proof'>,
  keyAt: (version: number) => KeyObject | undefined,
): boolean {
  if (block.proof === null) return false;
  const version = Number.parseInt(block.proof, 10);
  const key = keyAt(version);
  if (key === undefined) return false;
  const given = Buffer.from(block.proof);
  const expected = Buffer.from(proveBlock({ version, key }, block));
  return given.length === expected.length && timingSafeEqual(given, expected);
}
