/**
 * The statements that the vault signs about its log: how far each stream had grown, what retention removed, and which
 * data was erased.
 */

import { type Instant, latestInstant } from '../base/clock.ts';
import { parseTokenId, parseUuid, type TenantId } from '../base/ids.ts';
import { isObject, type Json, type JsonObject } from '../base/json.ts';
import { sha256 } from '../keys/digest.ts';
import type { KeyVersion } from '../keys/keyring.ts';
import { type SigningKey, signingKeyOf, verifySignature } from '../keys/signing.ts';
import type { Keys } from '../rules/proven-row.ts';
import type { Row } from '../store/tables.ts';

/** A stream had this many entries, and the last of them this hash. */
export type StreamHead = readonly [stream_id: string, seq: number, hash: string];

export interface Checkpoint {
  readonly type: typeof checkpointType;
  readonly tenant_id: TenantId;
  /** From 1 without a gap. */
  readonly seq: number;
  readonly created_at: Instant;
  /** Lower-case hex of SHA-256 of the statement before; null in the first. */
  readonly previous: string | null;
  /** Every stream that had grown since the statement before; it may name others too. */
  readonly heads: readonly StreamHead[];
  /** The public key, base64, that signs after this key. Only in the checkpoint that introduces it. */
  readonly introduces?: string;
  /** The public keys, base64, that signed before this one, the oldest first. Absent for the first key. */
  readonly succeeds?: readonly string[];
}

export interface LogRemoval {
  readonly type: typeof removalType;
  readonly tenant_id: TenantId;
  readonly stream_id: string;
  /** Entries 1 to `to_seq` are gone, that is `to_seq` of them. */
  readonly to_seq: number;
  /** The hash of the last one that is gone; the next entry continues from it. */
  readonly last_hash: string;
  /** All of them were created before this instant. */
  readonly before: Instant;
  readonly removed_at: Instant;
}

/** Data was erased, as an entry of the log says. */
export interface ErasureReceipt {
  readonly type: typeof erasureType;
  readonly tenant_id: TenantId;
  readonly entity: 'token' | 'tenant';
  readonly id: string;
  /** The operation of the entry: `delete`, or `expire`. */
  readonly operation: string;
  readonly erased_at: Instant;
  /** The entry, and the end of the block that has it, whose hash covers the entry and all before it. */
  readonly log_entry: {
    readonly stream_id: string;
    readonly seq: number;
    readonly head: readonly [seq: number, hash: string];
  };
  readonly row_gone_at: Instant;
  readonly search_terms_gone_at: Instant;
  readonly stored_responses: Leftovers;
  readonly results: Leftovers;
  /** Every key that sealed what was erased. */
  readonly keys: readonly ErasedKey[];
  /** The root key that wraps these keys in backups: the last one with which a backup can have them. */
  readonly root_key: WrappedBy | null;
  readonly issued_at: Instant;
}

/** Copies that were sealed with the data, each of which has its own end. */
export interface Leftovers {
  /** The latest time at which they are off the disk. */
  readonly gone_by: Instant;
  /** Whether the vault found none of that age when it issued the receipt. */
  readonly gone: boolean;
}

export interface ErasedKey {
  readonly purpose: string;
  /** Null where the row had been altered outside the vault, so that the version is not known. */
  readonly version: number | null;
  readonly state: string;
  readonly created_at: Instant | null;
  readonly destroyed_at: Instant | null;
  /** From then on the vault seals what is left under the key again, so that it can be destroyed. */
  readonly due_at: Instant | null;
}

export interface WrappedBy {
  readonly source: string;
  readonly key_id: string;
  readonly version: number;
}

type LogStatement = Checkpoint | LogRemoval | ErasureReceipt;

export const checkpointType = 'strongroom log checkpoint 1';
export const removalType = 'strongroom log removal 1';
export const erasureType = 'strongroom erasure receipt 1';

/** A signed string; the string itself is stored, so that a verifier need not rebuild it. */
export type Signed = Pick<Row<'checkpoints'>, 'statement' | 'public_key' | 'signature'>;

export function logSigningKey({ keyring }: Keys): SigningKey {
  return signingKeyOf(keyring.secret('audit'));
}

/** The keys that signed, or sign, statements about this tenant's log, destroyed ones too; the newest last. */
export function publicKeysOf({ keyring }: Keys): string[] {
  return keyring.versions.audit.flatMap((version) => publicKeyOf(version) ?? []);
}

/** Those before the active one. */
export function publicKeysBefore({ keyring }: Keys): string[] {
  const active = keyring.activeVersion('audit');
  return keyring.versions.audit
    .filter(({ version }) => version < active)
    .flatMap((version) => publicKeyOf(version) ?? []);
}

/** The keys that signed up to a checkpoint, by its own statement, the newest last. They are published next to it. */
export function signersUpTo(signed: Signed): readonly string[] {
  return [...(openCheckpoint(signed)?.succeeds ?? []), signed.public_key];
}

/** The public key of a version of the key that signs the log. */
export function publicKeyOf({ key, publicKey }: KeyVersion): string | undefined {
  return key ? signingKeyOf(key).publicKey : publicKey;
}

/** An attacker with write access to the database can store a statement of their own. It must not be trusted. */
export function isOwn(tenant: Keys, signed: Signed): boolean {
  return publicKeysOf(tenant).includes(signed.public_key);
}

export function signStatement(key: SigningKey, statement: LogStatement): Signed {
  const text = JSON.stringify(statement);
  return { statement: text, public_key: key.publicKey, signature: key.sign(text) };
}

export function statementHash(signed: Signed): string {
  return sha256(signed.statement).toString('hex');
}

/** The statement; `undefined` unless its own key signed it and it is a checkpoint. */
export function openCheckpoint(signed: Signed): Checkpoint | undefined {
  return open<Checkpoint>(signed, checkpointType, isCheckpoint);
}

/** The statement; `undefined` unless its own key signed it and it is about a removal. */
export function openRemoval(signed: Signed): LogRemoval | undefined {
  return open<LogRemoval>(signed, removalType, isRemoval);
}

/** The statement; `undefined` unless its own key signed it and it is about an erasure. */
export function openErasure(signed: Signed): ErasureReceipt | undefined {
  return open<ErasureReceipt>(signed, erasureType, isErasure);
}

/**
 * The owner of the key is not checked here, so the shape is not trusted either. A statement is parsed only
 * if it was signed as the kind that it claims to be.
 */
function open<S extends LogStatement>(
  signed: Signed,
  type: S['type'],
  hasShape: (statement: JsonObject) => boolean,
): S | undefined {
  const { statement: text, public_key: publicKey, signature } = signed;
  if (!text.startsWith(`{"type":"${type}"`)) return undefined;
  if (!verifySignature({ text, signature, publicKey })) return undefined;
  const parsed: unknown = JSON.parse(text);
  return isObject(parsed) && hasShape(parsed) ? (parsed as unknown as S) : undefined;
}

function isCheckpoint(statement: JsonObject): boolean {
  const { tenant_id, seq, created_at, previous, heads, introduces, succeeds = [] } = statement;
  return (
    (introduces === undefined || isWord(introduces)) &&
    Array.isArray(succeeds) &&
    succeeds.every(isWord) &&
    isUuid(tenant_id) &&
    isCount(seq) &&
    isTime(created_at) &&
    (previous === null || isWord(previous)) &&
    Array.isArray(heads) &&
    heads.every(isHead)
  );
}

function isHead(head: Json): boolean {
  if (!Array.isArray(head)) return false;
  const [stream, seq, hash] = head;
  return isWord(stream) && isCount(seq) && isWord(hash);
}

function isRemoval(statement: JsonObject): boolean {
  const { tenant_id, stream_id, to_seq, last_hash, before, removed_at } = statement;
  return (
    isUuid(tenant_id) &&
    [stream_id, last_hash].every(isWord) &&
    isCount(to_seq) &&
    [before, removed_at].every(isTime)
  );
}

function isErasure(statement: JsonObject): boolean {
  const { tenant_id, entity, id, operation, log_entry, keys, root_key } = statement;
  const times = ['erased_at', 'issued_at', 'row_gone_at', 'search_terms_gone_at'];
  return (
    isUuid(tenant_id) &&
    (entity === 'tenant' ? isUuid(id) : entity === 'token' && isTokenId(id)) &&
    (operation === 'delete' || operation === 'expire') &&
    times.every((name) => isTime(statement[name])) &&
    ['stored_responses', 'results'].every((name) => isLeftover(statement[name])) &&
    isObject(log_entry) &&
    isWord(log_entry['stream_id']) &&
    isCount(log_entry['seq']) &&
    isPlace(log_entry['head']) &&
    Array.isArray(keys) &&
    keys.every(isErasedKey) &&
    (root_key === null || isWrappedBy(root_key))
  );
}

function isPlace(place: Json | undefined): boolean {
  return Array.isArray(place) && isCount(place[0]) && isWord(place[1]);
}

function isLeftover(leftover: Json | undefined): boolean {
  if (!isObject(leftover)) return false;
  return isTime(leftover['gone_by']) && typeof leftover['gone'] === 'boolean';
}

function isErasedKey(key: Json): boolean {
  if (!isObject(key)) return false;
  const times = ['created_at', 'destroyed_at', 'due_at'].map((name) => key[name]);
  return (
    [key['purpose'], key['state']].every(isWord) &&
    (key['version'] === null || isCount(key['version'])) &&
    times.every((time) => time === null || isTime(time))
  );
}

function isWrappedBy(key: Json | undefined): boolean {
  return isObject(key) && [key['source'], key['key_id']].every(isWord) && isCount(key['version']);
}

/** What is printed must not be able to say anything else where it is. */
const wordForm = /^[A-Za-z0-9:/_.+=@,-]{1,512}$/;

const isWord = (value: unknown) => typeof value === 'string' && wordForm.test(value);
const isUuid = (value: unknown) => typeof value === 'string' && parseUuid(value) !== undefined;
const isTokenId = (value: unknown) =>
  typeof value === 'string' && parseTokenId(value) !== undefined;
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;
const isTime = (value: unknown) => isCount(value) && Number(value) <= latestInstant;
