/** Statements that keys of a log sign, made without a vault: also those that only a thief of a key would sign. */
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import type { LogStatement } from '../../packages/client/src/verify.ts';
import type { ErasureReceipt } from '../../packages/client/src/wire.ts';
import { viewErasure } from '../../src/audit/erasure.ts';
import {
  type ErasureReceipt as ErasureFacts,
  erasureType,
  type Signed,
} from '../../src/audit/statements.ts';
import type { Instant } from '../../src/base/clock.ts';
import type { TenantId } from '../../src/base/ids.ts';

export const tenantId = '9b9a5b1e-6f0f-4b7a-8e0c-0d5d6c8a4f11' as TenantId;

/** When the first checkpoint was signed. */
const signedAt = 1_700_000_000_000;
const minute = 60_000;

export type LogKeyPair = ReturnType<typeof signingKeys>;
export const signingKeys = () => generateKeyPairSync('ed25519');

export function publicKeyOf({ publicKey }: LogKeyPair): string {
  return Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64');
}

export function signedBy(keys: LogKeyPair, content: object): Signed {
  const statement = JSON.stringify(content);
  const signature = sign(null, Buffer.from(statement), keys.privateKey).toString('base64');
  return { statement, public_key: publicKeyOf(keys), signature };
}

export interface SignedCheckpoint extends Signed {
  readonly created_at: number;
}

/** As a vault signs it, after the one before. */
export function signedCheckpoint(
  keys: LogKeyPair,
  parts: { readonly seq: number } & Partial<LogStatement>,
  before?: Signed,
): SignedCheckpoint {
  const { seq, created_at = signedAt, heads = [], introduces, succeeds } = parts;
  const previous = before ? createHash('sha256').update(before.statement).digest('hex') : null;
  const signed = signedBy(keys, {
    type: 'strongroom log checkpoint 1',
    tenant_id: tenantId,
    seq,
    created_at,
    previous,
    heads,
    ...(introduces !== undefined && { introduces }),
    ...(succeeds !== undefined && { succeeds }),
  });
  return { ...signed, created_at };
}

export function erasureFacts(at: number, changes: object = {}): ErasureFacts {
  const instant = at as Instant;
  const gone = { gone_by: instant, gone: true };
  return {
    type: erasureType,
    tenant_id: tenantId,
    entity: 'token',
    id: 'card-of-bob',
    operation: 'delete',
    erased_at: instant,
    log_entry: { stream_id: '0b9a5b1e6f0f4b7a', seq: 1, head: [1, 'a'.repeat(64)] },
    row_gone_at: instant,
    search_terms_gone_at: instant,
    stored_responses: gone,
    results: gone,
    keys: [],
    root_key: null,
    issued_at: instant,
    ...changes,
  };
}

export function receiptBy(
  keys: LogKeyPair,
  facts: ErasureFacts,
  introductions: readonly Signed[] = [],
): ErasureReceipt {
  const shown = { ...viewErasure(facts), ...signedBy(keys, facts), introductions };
  return shown as unknown as ErasureReceipt;
}

interface StolenKeyReceipt {
  readonly name: string;
  readonly receipt: ErasureReceipt;
  readonly publicKeys: readonly string[];
  readonly isAccepted: boolean;
}

/** Receipts around the replacement of a key, with what a thief of the old one can add to them. */
export function stolenKeyReceipts(): readonly StolenKeyReceipt[] {
  const [before, after] = [signingKeys(), signingKeys()];
  const [old, next] = [publicKeyOf(before), publicKeyOf(after)];
  const introduction = signedCheckpoint(before, { seq: 7, introduces: next });
  const ofSuccessor = (created_at: number) =>
    signedCheckpoint(after, { seq: 8, created_at, succeeds: [old] }, introduction);
  const late = signedAt + 30 * 24 * 60 * minute;
  const claimed = signedCheckpoint(before, { seq: 9, created_at: late, introduces: next });
  const soon = erasureFacts(signedAt + 5 * minute);
  const beyond = erasureFacts(signedAt + 5 * minute + 1);
  const forged = erasureFacts(late);
  const given = [introduction, ofSuccessor(signedAt + minute)];
  const row = (
    name: string,
    receipt: ErasureReceipt,
    publicKeys: readonly string[],
    isAccepted = false,
  ) => ({ name, receipt, publicKeys, isAccepted });
  return [
    row('the new key, by the old one', receiptBy(after, forged, given), [old], true),
    row('a server that has not learned of it', receiptBy(before, soon, given), [old], true),
    row('a millisecond later', receiptBy(before, beyond, given), [old]),
    row('a month later', receiptBy(before, forged, given), [old]),
    row('a month later, known by the new key', receiptBy(before, forged, given), [next]),
    row('a month later, known by both keys', receiptBy(before, forged, given), [old, next]),
    row(
      'with a late checkpoint of the new key alone',
      receiptBy(before, forged, [ofSuccessor(late)]),
      [next],
    ),
    row('with an introduction of its own date', receiptBy(before, forged, [claimed]), [next]),
    row('with both', receiptBy(before, forged, [ofSuccessor(late), claimed]), [next]),
    row('with the first of the new key alone', receiptBy(before, forged, given.slice(1)), [
      old,
      next,
    ]),
    row('with nothing, known by both keys', receiptBy(before, forged), [old, next]),
    row('dated back, known by both keys', receiptBy(before, soon, given), [old, next]),
    row('with its own introduction, known by both', receiptBy(before, forged, [claimed]), [
      old,
      next,
    ]),
    row('the new key, known by both', receiptBy(after, forged), [old, next], true),
    row(
      'the new key, known by three, one twice',
      receiptBy(after, forged),
      [next, old, next],
      true,
    ),
  ];
}
