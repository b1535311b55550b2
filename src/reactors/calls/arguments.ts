/** The input of a reactor's code: the caller's arguments, with values in place of expressions. */

import type { Instant } from '../../base/clock.ts';
import { invalid, VaultError } from '../../base/errors.ts';
import { isObject, type Json } from '../../base/json.ts';
import { createPause } from '../../base/pauses.ts';
import { ExpressionError } from '../../expressions/evaluation/error.ts';
import { newEvaluation } from '../../expressions/evaluation/evaluation.ts';
import {
  type CompiledText,
  evaluateFitting,
  readText,
} from '../../expressions/request-parts/compile.ts';
import { hasExpressions } from '../../expressions/request-parts/forms.ts';
import { parseWritten } from '../../expressions/request-parts/json.ts';
import type { Caller } from '../../rules/caller.ts';
import { detailed, entryOf } from '../../rules/log-entries.ts';
import type { Refused } from '../../rules/operation.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { TokenReading } from '../../tokens/read.ts';
import {
  giving,
  placeOf,
  type ReferenceTarget,
} from '../../tokens/tokenization/reference-targets.ts';
import { listIds } from '../../tokens/tokenization/resolve-references.ts';
import { useReferences } from '../../tokens/tokenization/use-references.ts';
import type { CalledReactor } from './called-reactor.ts';

/** The limit applies to the serialized arguments, before and after values replace expressions. */
const argumentsBytesMax = 1_048_576;

/** Property names follow the contract of the image. */
export interface CodeInput {
  readonly name: 'args' | 'req';
  readonly json: Json;
}

/**
 * @param body of the request; `undefined` if the request has none.
 * @throws VaultError `validation_failed` naming what is wrong.
 */
export function readInput({ definition }: CalledReactor, body: unknown): CodeInput {
  const given = (body ?? {}) as Json;
  if (!isObject(given)) throw invalid('body', 'must be an object');
  if (definition.runtime.image === 'node22') return { name: 'req', json: given };
  const { args, callback_url, ...others } = given;
  if ((callback_url ?? null) !== null) {
    const message =
      'is removed; call POST /reactors/{id}/react-async, and read the result when a webhook says that it is there';
    throw invalid('callback_url', message);
  }
  if (Object.keys(others).length > 0) throw invalid('body', 'must have no attribute but args');
  if (!isObject(args ?? {})) throw invalid('args', 'must be an object');
  return { name: 'args', json: args ?? {} };
}

export interface WrittenInput {
  readonly input: CodeInput;
  /** One entry for each token and each token intent in the input. */
  readonly entries: readonly LogEntry[];
}

/**
 * Returns the input with values, or the refusal. Whether an expression fails may depend on a token or on the
 * configuration, so the log records every attempt.
 * @throws VaultError `validation_failed` for expressions that cannot be read, and for too many tokens;
 * `body_too_large`.
 */
export async function writeInput(
  tools: TokenReading,
  caller: Caller,
  { reactor, input, now }: InputToWrite,
): Promise<WrittenInput | Refused> {
  const text = JSON.stringify(input.json);
  requireSize(text);
  if (!hasExpressions(text)) return { input, entries: [] };
  const part = input.name === 'args' ? 'args' : 'body';
  const compiled = await compile(text, part);
  const evaluation = newEvaluation();
  const max = caller.tenant.quotas.reactor_token_limit;
  const used = await useReferences(tools, caller, {
    references: compiled.references,
    now,
    evaluation,
    access: giving,
    permission: 'reactor:invoke or token:use',
    max,
    quota: 'reactor_token_limit',
    invalid: (message) => invalid(part, message),
    unknown: (ids) => unknownTokens(ids, part),
    entryFor: (target) => useEntry(caller, now, { target, reactor }),
    attempt: { entity: 'reactor', id: reactor.id, operation: 'invoke' },
  });
  if ('refusal' in used) return used;
  const { valueOf: given, failures } = used;
  const { configuration: config } = reactor.definition;
  const scope = { valueOf: given, failures, config };
  try {
    const written = at(part, () =>
      evaluateFitting(compiled, scope, { evaluation, requireFit: requireSize }),
    );
    const json = at(part, () => parseWritten(written));
    return { input: { ...input, json }, entries: used.entries() };
  } catch (error) {
    if (!(error instanceof VaultError) || error.altered) throw error;
    return { change: { entries: used.unused }, refusal: error };
  }
}

export interface InputToWrite {
  readonly reactor: CalledReactor;
  readonly input: CodeInput;
  readonly now: Instant;
}

async function compile(text: string, part: string): Promise<CompiledText> {
  const pause = createPause();
  const { text: compiled, uncompiled } = at(part, () => readText(text, 'json'));
  for (const compileOne of uncompiled) {
    await pause();
    at(part, compileOne);
  }
  return compiled;
}

function useEntry(
  caller: Caller,
  now: Instant,
  { target, reactor }: { readonly target: ReferenceTarget; readonly reactor: CalledReactor },
): LogEntry {
  const { shown } = target;
  const disclosure = shown && ({ shown, through: 'reactor' } as const);
  const fact = { ...placeOf(target), operation: 'use reactor', disclosure } as const;
  const entry = entryOf(caller, now, fact);
  return detailed(entry, `reactor ${reactor.id}`);
}

function unknownTokens(ids: readonly string[], part: string): VaultError {
  return new VaultError('validation_failed', {
    public: `Failed to detokenize some tokens: ${listIds(ids)}. They were not found.`,
    internal: `${ids.length} ids to detokenize were not found`,
    errors: { [part]: ['must refer to tokens that exist'] },
  });
}

function requireSize(text: string): void {
  if (Buffer.byteLength(text) <= argumentsBytesMax) return;
  throw new VaultError('body_too_large', {
    public: `The arguments of a reactor must have at most ${argumentsBytesMax} bytes, values included.`,
  });
}

/** @throws VaultError naming the part, in place of an error of its expressions. */
function at<T>(part: string, evaluate: () => T): T {
  try {
    return evaluate();
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    throw invalid(part, `has an expression that fails: ${error.public}`);
  }
}
