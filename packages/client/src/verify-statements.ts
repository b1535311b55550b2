/** Statements that a vault signs with the key of a tenant's log: checkpoints, removals and receipts of erasure. */
import { bytesOf, fromBase64, fromPem, subtle } from './bytes.ts';
import { ConfigurationError, StrongroomError } from './errors.ts';
import type { ErasureReceipt, LogCheckpoint } from './wire.ts';

/**
 * What was verified is not what a vault signed: its `code` is `not_signed`, `not_trusted` or `altered`.
 *
 * @example
 * ```ts
 * import { ProofError, verifyErasureReceipt } from '@strongroom/client/verify';
 *
 * try {
 *   await verifyErasureReceipt({ ...receipt, id: 'another-token' }, { publicKeys });
 * } catch (error) {
 *   if (error instanceof ProofError) console.log(error.code, error.message);
 * }
 * ```
 */
export class ProofError extends StrongroomError {
  override get name(): string {
    return 'ProofError';
  }
}

/**
 * Whose signatures count.
 *
 * @example
 * ```ts
 * import { type TrustedKeys, verifyCheckpoint } from '@strongroom/client/verify';
 *
 * const trusted: TrustedKeys = { publicKeys };
 * await verifyCheckpoint(checkpoint, trusted);
 * ```
 */
export interface TrustedKeys {
  /**
   * Keys of the tenant's log that you stored earlier, in base64 or PEM: `public_keys` of a checkpoint. A key in the
   * same document as the signature proves nothing, because an attacker who alters one can alter both. The newest is
   * the last: receipts of erasure by those before it are not trusted, because nothing shows when they were signed.
   */
  readonly publicKeys: readonly string[];
}

/** What a vault signed, and with which key. */
export interface SignedStatement {
  readonly statement: string;
  readonly signature: string;
  readonly public_key: string;
}

/**
 * What a checkpoint says.
 *
 * @example
 * ```ts
 * import { type LogStatement, verifyCheckpoint } from '@strongroom/client/verify';
 *
 * const statement: LogStatement = await verifyCheckpoint(checkpoint, { publicKeys });
 * for (const [stream, entries, hash] of statement.heads) console.log(stream, entries, hash);
 * ```
 */
export interface LogStatement {
  readonly tenant_id: string;
  /** The number of the checkpoint, from 1 without a gap. */
  readonly seq: number;
  /** When it was signed, in milliseconds since 1970. */
  readonly created_at: number;
  /** SHA-256 of the statement of the checkpoint before, in hexadecimal; null in the first. */
  readonly previous: string | null;
  /** Of each stream that has grown: its id, how many entries it had, and the hash of the last of them. */
  readonly heads: readonly (readonly [stream: string, seq: number, hash: string])[];
  /** The key that signs after this one, in base64. Only in the checkpoint that introduces it. */
  readonly introduces?: string;
  /** The keys that signed before this one, in base64. */
  readonly succeeds?: readonly string[];
}

/** Retention removed the beginning of a stream. */
export interface RemovalStatement {
  readonly tenant_id: string;
  readonly stream_id: string;
  readonly to_seq: number;
  readonly last_hash: string;
}

/**
 * What a receipt of erasure says. Times are milliseconds since 1970.
 *
 * @example
 * ```ts
 * import { type ErasureStatement, verifyErasureReceipt } from '@strongroom/client/verify';
 *
 * const statement: ErasureStatement = await verifyErasureReceipt(receipt, { publicKeys });
 * console.log(statement.entity, statement.id, new Date(statement.erased_at));
 * ```
 */
export interface ErasureStatement {
  readonly tenant_id: string;
  readonly entity: string;
  readonly id: string;
  /** `delete` or `expire`. */
  readonly operation: string;
  readonly erased_at: number;
  /** The entry of the log that says so, and the end of its block. */
  readonly log_entry: {
    readonly stream_id: string;
    readonly seq: number;
    readonly head: readonly [seq: number, hash: string];
  };
  readonly row_gone_at: number;
  readonly search_terms_gone_at: number;
  readonly stored_responses: { readonly gone_by: number; readonly gone: boolean };
  readonly results: { readonly gone_by: number; readonly gone: boolean };
  /** The keys that sealed it. What a backup holds stays readable until none of them, or of the root key, is left. */
  readonly keys: readonly {
    readonly purpose: string;
    readonly version: number | null;
    readonly state: string;
    readonly created_at: number | null;
    readonly destroyed_at: number | null;
    readonly due_at: number | null;
  }[];
  readonly root_key: {
    readonly source: string;
    readonly key_id: string;
    readonly version: number;
  } | null;
  readonly issued_at: number;
}

const typeOfStatement = {
  checkpoint: 'strongroom log checkpoint 1',
  removal: 'strongroom log removal 1',
  erasure: 'strongroom erasure receipt 1',
} as const;

/**
 * Verifies a receipt of erasure, the response of `vault.tokens.erasure`, and gives what was signed.
 *
 * @throws ProofError where its statement is not signed by a trusted key, or an attribute differs from it.
 * @example
 * ```ts
 * import { verifyErasureReceipt } from '@strongroom/client/verify';
 *
 * const statement = await verifyErasureReceipt(receipt, { publicKeys });
 * console.log(`${statement.id} was erased at ${new Date(statement.erased_at).toISOString()}`);
 * ```
 */
export async function verifyErasureReceipt(
  receipt: ErasureReceipt,
  trusted: TrustedKeys,
): Promise<ErasureStatement> {
  const given = keysOf(trusted);
  const newest = keysOf({ publicKeys: trusted.publicKeys.slice(-1) });
  const { keys, signsUntil } = await withIntroduced(newest, receipt);
  const { type: _, ...statement } = (await openTrusted(
    receipt,
    'erasure',
    new Set([...given, ...keys]),
  )) as ErasureStatement & { type: string };
  const { public_key } = receipt;
  const until = signsUntil.get(public_key);
  if (!keys.has(public_key) || (until !== undefined && !(statement.issued_at <= until))) {
    throw new ProofError(
      'not_trusted',
      'The receipt is signed by a key that had been replaced. The vault issues it again under the newest key.',
    );
  }
  requireEqual(receipt, shownErasure(statement));
  return statement;
}

/**
 * Verifies a checkpoint of the log, the response of `vault.logs.checkpoint`, and gives what was signed.
 *
 * @throws ProofError where its statement is not signed by a trusted key, or an attribute differs from it.
 * @example
 * ```ts
 * import { verifyCheckpoint } from '@strongroom/client/verify';
 *
 * const { seq, heads } = await verifyCheckpoint(checkpoint, { publicKeys });
 * ```
 */
export async function verifyCheckpoint(
  checkpoint: LogCheckpoint,
  trusted: TrustedKeys,
): Promise<LogStatement> {
  const { type: _, ...statement } = (await openTrusted(
    checkpoint,
    'checkpoint',
    keysOf(trusted),
  )) as LogStatement & { type: string };
  const { tenant_id, seq, created_at } = statement;
  const public_keys = signersUpTo(checkpoint, statement);
  requireEqual(checkpoint, { tenant_id, seq, created_at: dateOf(created_at), public_keys });
  return statement;
}

/** Trusted keys as base64 of their 32 bytes. @throws ConfigurationError where one is no key, or there is none. */
export function keysOf({ publicKeys }: TrustedKeys): ReadonlySet<string> {
  if (publicKeys.length === 0) {
    throw new ConfigurationError('publicKeys must have the keys of the log that you trust.');
  }
  return new Set(publicKeys.map(keyOf));
}

/** What precedes the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410). */
const spkiPrefixBytes = 12;
const keyBytes = 32;

function keyOf(text: string): string {
  const der = fromPem(text);
  const bytes = der ? der.subarray(spkiPrefixBytes) : fromBase64(text.trim());
  if (bytes?.length === keyBytes) return btoa(String.fromCharCode(...bytes));
  throw new ConfigurationError('publicKeys must have Ed25519 keys, in base64 or PEM.');
}

/** Servers that have not learned of a new key may sign with the one before for so long after its introduction. */
export const replacedMsMax = 300_000;

interface IntroducedKeys {
  readonly keys: ReadonlySet<string>;
  /** Until when those sign that have introduced another. */
  readonly signsUntil: ReadonlyMap<string, number>;
}

/**
 * With the keys that the trusted ones introduce in the checkpoints that come with the receipt. A key vouches for none
 * that it has replaced: whoever stole an old key could add any later checkpoint in which the new key names it.
 */
async function withIntroduced(
  trusted: ReadonlySet<string>,
  { tenant_id, introductions }: ErasureReceipt,
): Promise<IntroducedKeys> {
  const keys = new Set(trusted);
  const signsUntil = new Map<string, number>();
  const given: unknown = introductions;
  // In the order of the keys, so that each one is introduced by one before it.
  for (const signed of Array.isArray(given) ? (given as SignedStatement[]) : []) {
    if (!keys.has(signed?.public_key)) continue;
    const statement = (await openStatement(signed, 'checkpoint')) as LogStatement | undefined;
    if (statement?.tenant_id !== tenant_id) continue;
    const { introduces, succeeds = [], created_at } = statement;
    if (introduces !== undefined) keys.add(introduces);
    for (const key of introduces === undefined ? succeeds : [...succeeds, signed.public_key]) {
      const until = created_at + replacedMsMax;
      signsUntil.set(key, Math.min(until, signsUntil.get(key) ?? until));
    }
  }
  return { keys, signsUntil };
}

/** The other keys of the log that a checkpoint vouches for. */
export function keysNamedIn({ introduces, succeeds = [] }: LogStatement): readonly string[] {
  return introduces === undefined ? succeeds : [...succeeds, introduces];
}

/** Whether the keys that are shown next to a checkpoint, if any, are those that its statement names. */
export function isPublishedWith(
  shown: SignedStatement & { readonly public_keys?: unknown },
  statement: LogStatement,
): boolean {
  const { public_keys = signersUpTo(shown, statement) } = shown;
  return textOf(public_keys) === textOf(signersUpTo(shown, statement));
}

/** The keys that signed up to a checkpoint, the newest last. */
function signersUpTo(
  { public_key }: SignedStatement,
  { succeeds = [] }: LogStatement,
): readonly string[] {
  return [...succeeds, public_key];
}

async function openTrusted(
  signed: SignedStatement,
  kind: keyof typeof typeOfStatement,
  trusted: ReadonlySet<string>,
): Promise<unknown> {
  const statement = await openStatement(signed, kind);
  if (statement === undefined) {
    throw new ProofError(
      'not_signed',
      `The statement is no ${kind} that the key next to it signed: it was altered, or is of another kind.`,
    );
  }
  if (trusted.has(signed.public_key)) return statement;
  throw new ProofError(
    'not_trusted',
    'The statement is signed by a key that is not in publicKeys: it is of another tenant, or forged.',
  );
}

/** What it says; `undefined` unless the key next to it signed it as this kind of statement. */
export async function openStatement(
  { statement, signature, public_key }: SignedStatement,
  kind: keyof typeof typeOfStatement,
): Promise<unknown> {
  if (!String(statement).startsWith(`{"type":"${typeOfStatement[kind]}"`)) return undefined;
  const key = fromBase64(String(public_key));
  const bytes = fromBase64(String(signature));
  if (key?.length !== keyBytes || bytes === undefined) return undefined;
  const imported = await subtle().importKey('raw', key, 'Ed25519', false, ['verify']);
  const isSigned = await subtle().verify('Ed25519', imported, bytes, bytesOf(statement));
  return isSigned ? JSON.parse(statement) : undefined;
}

/** What is signed and what is shown must be the same: a reader looks at the second. */
function requireEqual(shown: object, signed: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(signed)) {
    if (!(name in shown)) continue;
    if (textOf((shown as Record<string, unknown>)[name]) === textOf(value)) continue;
    throw new ProofError('altered', `The attribute ${name} differs from the signed statement.`);
  }
}

/** Equal for equal JSON, whatever the order of its members. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? '';
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${textOf(member)}`).join()}}`;
}

/** As responses show a time. */
function dateOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace('Z', '+00:00');
}

function shownErasure(statement: ErasureStatement): Readonly<Record<string, unknown>> {
  const { log_entry, stored_responses, results, keys } = statement;
  const date = (at: number | null) => (at === null ? null : dateOf(at));
  const [head_seq, head_hash] = log_entry.head;
  const { stream_id, seq } = log_entry;
  return {
    ...statement,
    erased_at: dateOf(statement.erased_at),
    log_entry: { stream_id, seq, head_seq, head_hash },
    row_gone_at: dateOf(statement.row_gone_at),
    search_terms_gone_at: dateOf(statement.search_terms_gone_at),
    stored_responses: { ...stored_responses, gone_by: dateOf(stored_responses.gone_by) },
    results: { ...results, gone_by: dateOf(results.gone_by) },
    keys: keys.map((key) => ({
      ...key,
      created_at: date(key.created_at),
      destroyed_at: date(key.destroyed_at),
      due_at: date(key.due_at),
    })),
    issued_at: dateOf(statement.issued_at),
  };
}
