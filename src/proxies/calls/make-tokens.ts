/** Transforms that create tokens from a request before it is sent, or from a response before it is returned. */

import type { Json, JsonObject } from '../../base/json.ts';
import type { Evaluation } from '../../expressions/evaluation/evaluation.ts';
import { compileValue, evaluateValue } from '../../expressions/request-parts/compile.ts';
import type { RequestScope } from '../../expressions/request-parts/scope.ts';
import type { Caller } from '../../rules/caller.ts';
import type { DecideOutcome } from '../../rules/operation.ts';
import { createTokens, type TokenWriting } from '../../tokens/create.ts';
import type { ReadTokenRequest } from '../../tokens/tokenization/tokenize.ts';
import type { TokenizeTransform } from '../transforms/definitions.ts';
import { at } from './call-texts.ts';

export interface MakingTokens extends TokenWriting {
  readonly readRequest: ReadTokenRequest;
}

export interface TokensToMake {
  /** At least one. */
  readonly transforms: readonly TokenizeTransform[];
  readonly scope: RequestScope;
  readonly evaluation: Evaluation;
  /** The name of the list in error messages. */
  readonly part: 'request_transforms' | 'response_transforms';
}

/** The tokens that expressions can refer to, by the identifiers of their transforms. */
export type MadeTokens = ReadonlyMap<string, Json>;

/**
 * Creates all tokens in one change, under the caller's rules for creating tokens.
 * @throws VaultError `validation_failed` and `invalid_proxy_request`; the decision throws as a create does.
 */
export function makeTokens(
  tools: MakingTokens,
  caller: Caller,
  { transforms, scope, evaluation, part }: TokensToMake,
): DecideOutcome<MadeTokens> {
  const requests = transforms.map(({ token }, index) => {
    const path = `${part}[${index}].options.token`;
    const given = at(path, () => evaluated(token, scope, evaluation));
    return { request: tools.readRequest(given), path };
  });
  let made: MadeTokens = new Map();
  const decide = createTokens(tools, caller, {
    requests,
    replyFor: (created, now) => {
      // Views omit data: the caller of a proxy must not see data that came from the destination.
      const views = created.map(({ viewAt }) => withoutData(viewAt(now) as JsonObject));
      made = new Map(
        transforms.flatMap(({ identifier }, index) =>
          identifier === undefined ? [] : [[identifier, views[index] ?? null]],
        ),
      );
      return { status: 200 };
    },
  });
  return async (conflict) => {
    const effect = await decide(conflict);
    if ('refusal' in effect) return effect;
    if (!('reply' in effect)) throw new Error('creating tokens calls no other host');
    return { change: effect.change, reply: made };
  };
}

/** Expressions that will belong to the token are not expressions of the call. */
function evaluated(token: JsonObject, scope: RequestScope, evaluation: Evaluation): JsonObject {
  const { mask, fingerprint_expression, search_indexes, ...rest } = token;
  const own = { mask, fingerprint_expression, search_indexes };
  const kept = Object.entries(own).filter(([, value]) => value !== undefined);
  const written = evaluateValue(compileValue(rest as JsonObject), scope, evaluation);
  return { ...(written as JsonObject), ...(Object.fromEntries(kept) as JsonObject) };
}

function withoutData({ data, ...rest }: JsonObject): JsonObject {
  return rest;
}
