/** Detokenizing: any JSON in which references to tokens are replaced by what they hold. */

import { invalid } from '../../base/errors.ts';
import { isObject, type Json } from '../../base/json.ts';
import { createPause } from '../../base/pauses.ts';
import { ExpressionError } from '../../expressions/evaluation/error.ts';
import { type Evaluation, newEvaluation } from '../../expressions/evaluation/evaluation.ts';
import {
  type ExpressionLimit,
  evaluateReferences,
  type ReferenceTemplate,
  readReferences,
} from '../../expressions/references.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide, Effect } from '../../rules/operation.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { TokenReading } from '../read.ts';
import { readTokens } from '../reply-expiry.ts';
import { dialectOf } from './dialects.ts';
import { type ResolvedReferences, resolveReferences } from './resolve-references.ts';

/**
 * The body with every expression replaced by its value, as the caller's `token:read` lets it see the
 * tokens. Nothing is returned unless all of it can be.
 *
 * @throws VaultError `validation_failed` for a body that has no such expressions, or too many. From
 * the decision that for ids of no token and for expressions that fail on what they find, and
 * `forbidden`.
 */
export function detokenize(tools: TokenReading, caller: Caller, body: Json): Decide {
  const { template, uncompiled } = readReferences(inDialect(body, caller), limitOf(caller));
  return async () => {
    const pause = createPause();
    for (const compile of uncompiled) {
      await pause();
      compile();
    }
    const now = tools.clock.now();
    const evaluation = newEvaluation();
    const { references } = template;
    const wanted = { references, through: 'detokenize', now, evaluation } as const;
    const resolved = await resolveReferences(tools, caller, wanted);
    if (!('targets' in resolved)) return resolved;
    const values: Json[] = [];
    for (const reference of references) {
      // Masks may take long.
      const turn = pause();
      if (turn) await turn;
      values.push(resolved.valueFor(reference));
    }
    const fact = { entity: 'token', id: caller.tenant.id, operation: 'detokenize' } as const;
    return respond({ template, values, evaluation }, resolved, entryOf(caller, now, fact));
  };
}

function limitOf({ tenant }: Caller): ExpressionLimit {
  const max = tenant.quotas.detokenize_limit;
  const message = `has more than ${max} expressions; the Detokenize Limit of this tenant is ${max}`;
  return { max, message };
}

interface Evaluable {
  readonly template: ReferenceTemplate;
  readonly values: readonly Json[];
  readonly evaluation: Evaluation;
}

/** The log records the tokens that were read even if an expression then fails on them. */
function respond(
  { template, values, evaluation }: Evaluable,
  { entries, targets }: ResolvedReferences,
  nothingRead: LogEntry,
): Effect {
  const [first = nothingRead, ...others] = entries;
  const change = { entries: [first, ...others] } as const;
  try {
    const body = evaluateReferences(template, values, evaluation);
    return { change, reply: { status: 200, body, ...readTokens(targets) } };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { change, refusal: invalid(error.path || 'body', error.public) };
  }
}

/** An id alone between braces, without the name of a kind and without filters. */
const bareReference = /^\s*\{\{(?!\s*token(?:_intent)?\s*:)[^{}|]+\}\}\s*$/;

/** A body that is only a list of tokens may mean the tokens rather than their data. */
function inDialect(body: Json, { origin }: Caller): Json {
  if (dialectOf(origin.dialect).listedToken === 'data' || !isObject(body)) return body;
  const { tokens, ...others } = body;
  if (!Array.isArray(tokens) || Object.keys(others).length > 0) return body;
  return { tokens: tokens.map(asWholeToken) };
}

function asWholeToken(item: Json): Json {
  return typeof item === 'string' && bareReference.test(item)
    ? item.replace('{{', '{{ token:')
    : item;
}
