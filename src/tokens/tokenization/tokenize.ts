/** Tokenizing any JSON: its values become tokens, and the response has its shape. */

import type { Instant } from '../../base/clock.ts';
import { invalid } from '../../base/errors.ts';
import { isObject, type Json, type JsonObject, nestingMax } from '../../base/json.ts';
import {
  attemptAt,
  createValidationErrors,
  type ValidationErrors,
} from '../../base/validation-errors.ts';
import { memberPath } from '../../expressions/attribute-path.ts';
import { setMember } from '../../expressions/template.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { TokenBody } from '../../rules/reply.ts';
import type { TokenRequest } from '../contents/contents.ts';
import { createTokens, type TokenWriting } from '../create.ts';
import type { RequestedToken } from '../prepare.ts';
import { changedTokens } from '../reply-expiry.ts';

/** Reads an object that requests a token; throws `validation_failed` naming its errors. */
export type ReadTokenRequest = (json: JsonObject) => TokenRequest;

export interface Tokenization {
  readonly body: Json;
  readonly readRequest: ReadTokenRequest;
  /** The response shows the tokens without their data: the tokenized values are not the caller's. */
  readonly hidesData?: boolean;
}

/**
 * Every string, number, and boolean becomes a token of the type `token` and is replaced by its id; an
 * object with `type` and `data`, or with `token_intent_id`, is a token request and is replaced by
 * the token. All of them are created in one change, or none.
 *
 * @throws VaultError `validation_failed` naming every invalid attribute by its path in the body.
 */
export function tokenize(
  tools: TokenWriting,
  caller: Caller,
  { body, readRequest, hidesData = false }: Tokenization,
): Decide {
  const requests: RequestedToken[] = [];
  const errors = createValidationErrors();
  const count = counterUpTo(caller.tenant.quotas.tokenize_limit);
  const gathering = { requests, errors, count, readRequest };
  const mirror = mirrorOf(body, { path: '', level: 1 }, gathering);
  errors.settle();
  if (requests.length === 0) return nothingToDo(tools, caller, mirror([]));
  return createTokens(tools, caller, {
    requests,
    replyFor: (created, now) => {
      const views = created.map(({ viewAt }) => viewAt(now));
      if (hidesData) return { status: 200, body: mirror(views.map(withoutData)) };
      return { status: 200, body: mirror(views), ...changedTokens(created, mirror) };
    },
  });
}

function withoutData({ data, ...rest }: TokenBody): TokenBody {
  return rest as TokenBody;
}

/** Counts tokens as they are found, so that a body with too many is not read to its end. */
function counterUpTo(limit: number): () => void {
  let count = 0;
  return () => {
    count += 1;
    if (count <= limit) return;
    const message = `has more than ${limit} tokens; the Tokenize Limit of this tenant is ${limit}`;
    throw invalid('body', message);
  };
}

/** The part of the response that takes the place of a part of the body. */
type ResponsePart = (tokens: readonly TokenBody[]) => Json;

interface MirrorPosition {
  readonly path: string;
  readonly level: number;
}

interface GatheredTokens {
  readonly requests: RequestedToken[];
  readonly errors: ValidationErrors;
  /** To be called for each token, before it is looked at. */
  readonly count: () => void;
  readonly readRequest: ReadTokenRequest;
}

function mirrorOf(
  json: Json,
  { path, level }: MirrorPosition,
  gathering: GatheredTokens,
): ResponsePart {
  if (level > nestingMax) {
    throw invalid(path, `must not be nested deeper than ${nestingMax} levels`);
  }
  if (json === null) return () => null;
  if (Array.isArray(json)) {
    const items = json.map((item, index) =>
      mirrorOf(item, { path: `${path}[${index}]`, level: level + 1 }, gathering),
    );
    return (tokens) => items.map((item) => item(tokens));
  }
  if (!isObject(json)) {
    gathering.count();
    const position = gathering.requests.push({ request: { type: 'token', data: json }, path }) - 1;
    return (tokens) => tokens[position]?.id ?? null;
  }
  return isTokenRequest(json)
    ? mirrorOfRequest(json, path, gathering)
    : mirrorOfObject(json, { path, level }, gathering);
}

/** The number of tokens that a body requests, counted before any of them is made. */
export function tokensIn(json: Json, level = 1): number {
  if (json === null || level > nestingMax) return 0;
  if (typeof json !== 'object' || (isObject(json) && isTokenRequest(json))) return 1;
  const members: readonly Json[] = isObject(json) ? Object.values(json) : json;
  return members.reduce((sum: number, member) => sum + tokensIn(member, level + 1), 0);
}

/** `encrypted` marks a request that this vault does not take; as plain values it would be misread. */
function isTokenRequest(json: JsonObject): boolean {
  const has = (name: string) => Object.hasOwn(json, name);
  return has('token_intent_id') || (has('type') && (has('data') || has('encrypted')));
}

function mirrorOfRequest(
  json: JsonObject,
  path: string,
  { requests, errors, count, readRequest }: GatheredTokens,
): ResponsePart {
  count();
  const request = errors.attempt(() => attemptAt(path, () => readRequest(json)));
  if (request === undefined) return () => null;
  const position = requests.push({ request, path }) - 1;
  return (tokens) => (tokens[position] ?? null) as Json;
}

function mirrorOfObject(
  json: JsonObject,
  { path, level }: MirrorPosition,
  gathering: GatheredTokens,
): ResponsePart {
  const members = Object.entries(json).map(([name, value]) => {
    const place = { path: memberPath(path, name), level: level + 1 };
    return { name, mirror: mirrorOf(value, place, gathering) };
  });
  return (tokens) => {
    const result: Record<string, Json> = {};
    for (const { name, mirror } of members) setMember(result, name, mirror(tokens));
    return result;
  };
}

function nothingToDo({ clock }: { clock: { now(): Instant } }, caller: Caller, body: Json): Decide {
  const fact = { entity: 'token', id: caller.tenant.id, operation: 'tokenize' } as const;
  return async () => ({
    change: { entries: [entryOf(caller, clock.now(), fact)] },
    reply: { status: 200, body },
  });
}
