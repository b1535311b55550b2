/** The tokens of a stored response: what the vault may still show of them when it sends the response again. */

import type { Instant } from '../../base/clock.ts';
import { createPause } from '../../base/pauses.ts';
import { type Evaluation, newEvaluation } from '../../expressions/evaluation/evaluation.ts';
import type { Reference } from '../../expressions/reading.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import { openerFor } from '../../rules/openings.ts';
import type { Permission } from '../../rules/permissions.ts';
import {
  decide,
  type Grant,
  grantInAll,
  holds,
  type Policy,
  seesInAll,
  showsAsMuch,
  type Transform,
} from '../../rules/policy.ts';
import { requireProven } from '../../rules/proven-row.ts';
import type {
  NarrowerBody,
  Reply,
  ReplyBody,
  ShownToken,
  ShownTokens,
  TokenBody,
} from '../../rules/reply.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { SmallRow } from '../../store/queries/small-rows.ts';
import { isWhole, type Unproven } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import { hasExpired } from '../../tokens/contents/contents.ts';
import { containerIn } from '../../tokens/contents/read-entry.ts';
import { sealedData } from '../../tokens/contents/sealed-row.ts';
import { shownAgain, withoutContents } from '../../tokens/contents/view.ts';
import { containersOfIntent } from '../../tokens/intents/row.ts';
import { isLive } from '../../tokens/intents/token-intents.ts';
import type { TokenReading } from '../../tokens/read.ts';
import { type ReferencedRows, referencedRows } from '../../tokens/tokenization/reference-rows.ts';

/** A token as the response showed it; sealed with the response. */
export interface StoredToken {
  readonly entity: 'token' | 'token_intent';
  readonly id: string;
  readonly created_at: Instant;
  readonly version: number;
  readonly permission: Permission;
  readonly transform: Transform;
  /** Its place in the body; absent where the request only read. */
  readonly path?: BodyPath;
}

type BodyPath = readonly (string | number)[];

/** A reply with the tokens it shows, as both are stored. */
export type StoredReply = Omit<Reply, 'list' | 'expiry' | 'tokens'> & {
  readonly tokens?: readonly StoredToken[];
};

export function storedTokens({ shown, bodyOf }: ShownTokens): readonly StoredToken[] {
  if (bodyOf === undefined) return shown.flatMap((one) => storedToken(one) ?? []);
  const marks = shown.map(({ row }): TokenBody => ({ id: idOf(row) }));
  const paths = new Map(pathsOf(bodyOf(marks), []));
  return shown.flatMap((one, index) => {
    const stored = storedToken(one);
    const path = paths.get(marks[index]);
    return stored && path ? { ...stored, path } : [];
  });
}

function storedToken({ row, grant }: ShownToken): StoredToken | undefined {
  if (grant === undefined) return undefined;
  const { created_at, version } = row;
  const { permission, transform } = grant;
  const entity = 'token_id' in row ? 'token' : 'token_intent';
  return { entity, id: idOf(row), created_at, version, permission, transform };
}

function idOf(row: ShownToken['row']): string {
  return 'token_id' in row ? row.token_id : row.token_intent_id;
}

/** Every object of a body with its path. */
function pathsOf(part: unknown, path: BodyPath): (readonly [unknown, BodyPath])[] {
  if (typeof part !== 'object' || part === null) return [];
  const members: readonly (readonly [string | number, unknown])[] = Array.isArray(part)
    ? part.map((item, index) => [index, item])
    : Object.entries(part);
  const below = members.flatMap(([step, member]) => pathsOf(member, [...path, step]));
  return [[part, path], ...below];
}

export interface Replay {
  readonly reply: Reply;
  /** The log entries for the tokens in the response. */
  readonly reads: readonly LogEntry[];
}

export interface ReplyToReplay {
  readonly caller: Caller;
  readonly now: Instant;
  readonly reply: StoredReply;
}

/**
 * The response without tokens that have been removed or that the caller may no longer see. `undefined` for a request
 * that only reads, if its response would be different now: it is processed again.
 */
export async function replyAsSeenNow(
  tools: TokenReading,
  { caller, now, reply }: ReplyToReplay,
): Promise<Replay | undefined> {
  const { tokens = [], narrower, ...response } = reply;
  if (narrower && !maySeeMore(caller.policy, narrower)) {
    return { reply: { ...response, body: narrower.body }, reads: [] };
  }
  const evaluation = newEvaluation();
  const rows = await referencedRows(tools.store, caller.tenant.id, tokens.map(referenceTo));
  const pause = createPause();
  const reads: LogEntry[] = [];
  let { body } = response;
  for (const stored of tokens) {
    await pause();
    const token = await tokenSeenNow(tools, { caller, now, stored, rows });
    const isSame = token !== undefined && isAsBefore(stored, token);
    if (!isSame) {
      if (stored.path === undefined || body === undefined) return undefined;
      body = replacedAt(body, stored.path, (part) =>
        token && 'token_id' in token.row
          ? seenNow(tools, { caller, now, evaluation, part, row: token.row, grant: token.grant })
          : withoutContents(part),
      );
    }
    if (token) {
      const { row, grant } = token;
      const transform = isSame ? stored.transform : grant.transform;
      reads.push(...readAgain({ caller, now }, { stored, row, transform, isSame }));
    }
  }
  return { reply: body === undefined ? response : { ...response, body }, reads };
}

function maySeeMore(policy: Policy, { permission, containers }: NarrowerBody): boolean {
  return containers ? seesInAll(policy, permission, containers) : holds(policy, permission);
}

/** An entry for a token that is shown again, unless its data is as the request itself brought it. */
function readAgain(
  { caller, now }: Pick<ReplyToReplay, 'caller' | 'now'>,
  { stored, row, transform, isSame }: RepeatedRead,
) {
  if (stored.permission === 'token:create' && isSame) return [];
  const { entity, id } = stored;
  const disclosure = { shown: shownBy[transform], through: 'replay' } as const;
  const event = { [entity]: { type: row.type } };
  const container = containerIn(row);
  return [entryOf(caller, now, { entity, id, container, operation: 'read', disclosure, event })];
}

interface RepeatedRead {
  readonly stored: StoredToken;
  readonly row: TokenSeenNow['row'];
  readonly transform: Transform;
  readonly isSame: boolean;
}

const shownBy = { reveal: 'revealed', mask: 'masked', redact: 'redacted' } as const;

interface TokenSeenNow {
  readonly row: Row<'tokens'> | Row<'token_intents'>;
  readonly grant: Grant;
}

interface ReplayedToken {
  readonly caller: Caller;
  readonly now: Instant;
  readonly stored: StoredToken;
  /** Of all tokens of the response, as far as they are small. */
  readonly rows: ReferencedRows;
}

function referenceTo({ entity, id }: StoredToken): Reference {
  return { kind: entity, id };
}

/**
 * What remains of a token that still exists and that the caller may still access. Large rows are read one at a time,
 * after the permission check: together they may be many times as large as when the response was stored.
 * @throws VaultError `integrity` if the row was altered outside the vault, even if nothing of it would be shown.
 */
async function tokenSeenNow(
  { store }: TokenReading,
  { rows, ...replayed }: ReplayedToken,
): Promise<TokenSeenNow | undefined> {
  const { caller, stored } = replayed;
  const found = tokenAmong(rows, replayed);
  if (found === undefined) return undefined;
  const whole = isWhole(found.row)
    ? found
    : tokenAmong(await referencedRows(store, caller.tenant.id, [referenceTo(stored)]), replayed);
  if (whole === undefined) return undefined;
  const { row, grant } = whole as unknown as WholeToken;
  return 'token_id' in row
    ? { row: requireProven(caller.tenant, 'tokens', row), grant }
    : { row: requireProven(caller.tenant, 'token_intents', row), grant };
}

/** Large rows come without data. A different token that has taken the id since is not a match. */
function tokenAmong(
  rows: ReferencedRows,
  { caller: { policy }, now, stored }: Omit<ReplayedToken, 'rows'>,
): FoundToken | undefined {
  const { id, permission } = stored;
  if (stored.entity === 'token') {
    const row = rows.tokens.get(id);
    if (row?.created_at !== stored.created_at || hasExpired(row, now)) return undefined;
    const subject = { id: row.token_id, container: row.container };
    const grant = decide(policy, isForeign(stored, row) ? 'token:read' : permission, subject);
    return grant && { row, grant };
  }
  const row = rows.token_intents.get(id);
  if (row?.created_at !== stored.created_at || !isLive(row, now)) return undefined;
  if (!holds(policy, 'token-intent:read')) return undefined;
  const grant = grantInAll(containersOfIntent(row), (place) => decide(policy, permission, place));
  return grant && { row, grant };
}

interface FoundToken {
  readonly row: SmallRow<'tokens'> | SmallRow<'token_intents'>;
  readonly grant: Grant;
}

interface WholeToken extends Pick<FoundToken, 'grant'> {
  readonly row: Unproven<'tokens'> | Unproven<'token_intents'>;
}

/** A creation shows what its request sent. Later changes of the token are shown to callers who may read it. */
function isForeign(
  { permission }: StoredToken,
  { modified_at }: Pick<Row<'tokens'>, 'modified_at'>,
): boolean {
  return permission === 'token:create' && modified_at !== null;
}

/** A mask gives the same result only for an unchanged token; a caller who sees everything may see its past too. */
function isAsBefore(stored: StoredToken, seen: TokenSeenNow): boolean {
  const { row, grant } = seen;
  if (!showsAsMuch(grant.transform, stored.transform)) return false;
  return grant.transform !== 'mask' || row.version === stored.version;
}

interface PartDisclosure {
  readonly caller: Caller;
  readonly now: Instant;
  readonly evaluation: Evaluation;
  readonly part: TokenBody;
  readonly row: Row<'tokens'>;
  readonly grant: Grant;
}

function seenNow(
  { onMaskFailure }: TokenReading,
  { caller, now, evaluation, part, row, grant }: PartDisclosure,
): TokenBody {
  const sealed = sealedData(openerFor(caller, grant), row, now);
  return shownAgain(part, { sealed, grant, evaluation, onMaskFailure });
}

/** The body belongs to this request alone: it was just opened. */
function replacedAt(
  body: ReplyBody,
  path: BodyPath,
  replace: (part: TokenBody) => TokenBody,
): ReplyBody {
  const last = path.at(-1);
  if (last === undefined) return replace(body as TokenBody);
  let parent = body as Record<string | number, unknown>;
  for (const step of path.slice(0, -1)) parent = parent[step] as typeof parent;
  parent[last] = replace(parent[last] as TokenBody);
  return body;
}
