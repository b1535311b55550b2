/** The tokens of a stored response: what it may still show of them when it is sent again. */
import { type Evaluation, newEvaluation } from '../expressions/evaluation/evaluation.ts';
import type { Instant } from '../lib/clock.ts';
import type { LogEntry } from '../lib/log-chain/entries.ts';
import { createPause } from '../lib/pauses.ts';
import type { Caller } from '../rules/caller.ts';
import { entryOf } from '../rules/log-entries.ts';
import type { Permission } from '../rules/permissions.ts';
import { decide, type Grant, holds, showsAsMuch, type Transform } from '../rules/policy.ts';
import type { Reply, ReplyBody, ShownToken, ShownTokens, TokenBody } from '../rules/reply.ts';
import type { TokenState } from '../store/queries/tokens.ts';
import type { Row } from '../store/tables.ts';
import { openData } from '../values/sealed-row.ts';
import { type TokenTypeName, tokenTypes } from '../values/token-types.ts';
import { shownAgain, withoutContents } from '../values/view.ts';
import { liveIntent } from '../vault/token-intents/token-intents.ts';
import { findLiveToken, liveTokenStates } from '../vault/tokens/queries.ts';
import type { TokenReading } from '../vault/tokens/read.ts';

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
  /** What the log says of the tokens in it. */
  readonly reads: readonly LogEntry[];
}

export interface ReplyToReplay {
  readonly caller: Caller;
  readonly now: Instant;
  readonly reply: StoredReply;
}

/**
 * The response without what is gone by now, or is not the caller's to see any more. `undefined` for
 * that of a request which only read, when its response would be another one now: it is processed again.
 */
export async function replyAsSeenNow(
  tools: TokenReading,
  { caller, now, reply }: ReplyToReplay,
): Promise<Replay | undefined> {
  const { tokens = [], narrower, ...answer } = reply;
  if (narrower && !holds(caller.policy, narrower.permission)) {
    return { reply: { ...answer, body: narrower.body }, reads: [] };
  }
  const evaluation = newEvaluation();
  const ids = tokens.flatMap(({ entity, id }) => (entity === 'token' ? [id] : []));
  const states = await liveTokenStates(tools.store, { tenant: caller.tenant.id, ids, now });
  // Reads that begin in one turn of the event loop are one query.
  const seen = await Promise.all(
    tokens.map((stored) => targetSeenNow(tools, { caller, now, stored, states })),
  );
  const pause = createPause();
  const reads: LogEntry[] = [];
  let { body } = answer;
  for (const [index, stored] of tokens.entries()) {
    const token = seen[index];
    if (token && isAsBefore(stored, token)) {
      const { type } = token.row;
      reads.push(...readAgain({ caller, now }, { stored, type, transform: stored.transform }));
      continue;
    }
    if (stored.path === undefined || body === undefined) return undefined;
    const row = await rowSeenNow(tools, { caller, now, stored, token });
    await pause();
    if (row && token) {
      const { type } = row;
      reads.push(...readAgain({ caller, now }, { stored, type, transform: token.grant.transform }));
    }
    body = replacedAt(body, stored.path, (part) =>
      row && token
        ? seenNow(tools, { caller, now, evaluation, part, row, grant: token.grant })
        : withoutContents(part),
    );
  }
  return { reply: body === undefined ? answer : { ...answer, body }, reads };
}

/** An entry for a token that is shown again, unless its data was brought by the request itself. */
function readAgain(
  { caller, now }: Pick<ReplyToReplay, 'caller' | 'now'>,
  { stored, type, transform }: RepeatedRead,
) {
  if (stored.permission === 'token:create') return [];
  const { entity, id } = stored;
  const disclosure = { shown: shownBy[transform], through: 'replay' } as const;
  const event = { [entity]: { type } };
  return [entryOf(caller, now, { entity, id, operation: 'read', disclosure, event })];
}

interface RepeatedRead {
  readonly stored: StoredToken;
  readonly type: string;
  readonly transform: Transform;
}

const shownBy = { reveal: 'revealed', mask: 'masked', redact: 'redacted' } as const;

interface TokenSeenNow {
  readonly row: TokenState | Row<'token_intents'>;
  readonly grant: Grant;
}

interface ReplayedToken {
  readonly caller: Caller;
  readonly now: Instant;
  readonly stored: StoredToken;
}

/** What remains of a token that still exists and that the caller may still access. */
async function targetSeenNow(
  { store }: TokenReading,
  {
    caller,
    now,
    stored,
    states,
  }: ReplayedToken & { readonly states: ReadonlyMap<string, TokenState> },
): Promise<TokenSeenNow | undefined> {
  const { policy } = caller;
  const { id, permission } = stored;
  if (stored.entity === 'token') {
    const row = states.get(id);
    const subject = row && { id: row.token_id, container: row.container };
    const grant =
      subject && decide(policy, isForeign(stored, row) ? 'token:read' : permission, subject);
    return grant && { row, grant };
  }
  const row = holds(policy, 'token-intent:read')
    ? await liveIntent(store, caller, { id, now })
    : undefined;
  const container = row && tokenTypes[row.type as TokenTypeName].container;
  const grant = container && decide(policy, permission, { id: undefined, container });
  return grant && row && { row, grant };
}

/**
 * The whole token that the response is to show again, read for itself: together they may be many times
 * what they were when the response was stored. As it was decided on, or it is left out.
 */
async function rowSeenNow(
  { store }: TokenReading,
  { caller, now, stored, token }: ReplayedToken & { readonly token: TokenSeenNow | undefined },
): Promise<Row<'tokens'> | undefined> {
  if (token === undefined || !('token_id' in token.row)) return undefined;
  if (token.row.created_at !== stored.created_at) return undefined;
  const row = await findLiveToken(store, { tenant: caller.tenant.id, id: stored.id, now });
  return row?.version === token.row.version ? row : undefined;
}

/** A creation shows what its request sent; later changes of the token are shown to callers who may read it. */
function isForeign({ permission }: StoredToken, { modified_at }: TokenState): boolean {
  return permission === 'token:create' && modified_at !== null;
}

/** A mask gives the same result only for an unchanged token; who sees everything may see the past too. */
function isAsBefore(stored: StoredToken, seen: TokenSeenNow): boolean {
  if (seen.row.created_at !== stored.created_at) return false;
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
  const open = () => openData(caller.tenant, row, now);
  return shownAgain(part, { row, open, grant, evaluation, onMaskFailure });
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
