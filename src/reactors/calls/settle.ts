/** Decides the outcome of a call: its response, the tokens it creates, and their log entries. */
import type { Clock } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import type { Json, JsonObject } from '../../base/json.ts';
import { below } from '../../base/validation-errors.ts';
import { detailed } from '../../rules/log-entries.ts';
import type { CompletedOperation, Decide, DecideOutcome, Refused } from '../../rules/operation.ts';
import { holds } from '../../rules/policy.ts';
import { refuse } from '../../rules/refusal.ts';
import type { Reply } from '../../rules/reply.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import { tokenize } from '../../tokens/tokenization/tokenize.ts';
import { type CodeRun, sourceOf } from '../runs/run.ts';
import type { CodeTokenTools } from '../runs/tokens.ts';
import type { CalledReactor } from './called-reactor.ts';
import { type CallEnd, completedEntry, failedEntry, type LoggedReactorCall } from './entries.ts';
import { madeByError, type ShapedResponse, shapeOf } from './response.ts';

export interface CallToSettle extends LoggedReactorCall {
  readonly reactor: CalledReactor;
}

/**
 * Creates tokens under the caller's rules. Clients automatically retry after a 500. If the request has an idempotency
 * key, such a retry does not repeat code that has acted, unless the code refused with a class of the error package.
 */
export function settle(
  tools: CodeTokenTools & { readonly clock: Clock },
  call: CallToSettle,
  run: CodeRun,
): DecideOutcome {
  const { outcome, hasActed } = run;
  const decide = decisionOn(tools, call, run);
  if (!hasActed || (outcome.kind === 'failed' && outcome.failure.isOwn)) return decide;
  return async (conflict) => {
    const decided = await decide(conflict);
    return 'refusal' in decided ? { ...decided, keepsKey: true } : decided;
  };
}

function decisionOn(
  tools: CodeTokenTools & { readonly clock: Clock },
  call: CallToSettle,
  { outcome, milliseconds }: CodeRun,
): DecideOutcome {
  const ended = () => ({ now: tools.clock.now(), milliseconds });
  const shaped = shapedBy(call, outcome);
  if ('failure' in shaped) {
    const { error, reason } = shaped.failure;
    return async () => refused(failedEntry(call, ended(), reason), error);
  }
  if ('made' in shaped) {
    const { made } = shaped;
    return async () => done(call, ended(), { status: 200, made });
  }
  const { body, tokenize: values } = shaped;
  if (values === undefined) return async () => done(call, ended(), { status: 200, body });
  return tokenizing(tools, call, { body, values, ended });
}

function shapedBy({ reactor }: CallToSettle, outcome: CodeRun['outcome']): ShapedResponse {
  if (outcome.kind === 'failed') return outcome;
  if (outcome.kind === 'responded') return madeByError(outcome.response);
  return shapeOf(reactor, outcome.value);
}

function done(call: LoggedReactorCall, ended: CallEnd, reply: Reply): CompletedOperation {
  return { change: { entries: [completedEntry(call, ended)] }, reply };
}

function refused(entry: LogEntry, refusal: VaultError): Refused {
  return { change: { entries: [entry] }, refusal };
}

interface Tokenizing {
  readonly body: JsonObject;
  readonly values: Json;
  readonly ended: () => CallEnd;
}

/** Either one change creates all tokens together with the entry of the call, or the call fails. */
function tokenizing(
  tools: CodeTokenTools & { readonly clock: Clock },
  call: CallToSettle,
  { body, values, ended }: Tokenizing,
): DecideOutcome {
  const { caller, reactor } = call;
  const source = sourceOf({ entity: 'reactor', id: reactor.id });
  let decide: Decide | undefined;
  return async (conflict) => {
    try {
      if (!holds(caller.policy, 'token:create')) {
        const refusal = { entity: 'token', id: '*', permission: 'token:create' } as const;
        return failed(call, ended(), refuse(caller, tools.clock.now(), refusal));
      }
      decide ??= tokenize(tools, caller, {
        body: values,
        readRequest: tools.readRequest,
        hidesData: true,
      });
      const effect = await decide(conflict);
      if ('refusal' in effect) return failed(call, ended(), effect);
      if (!('reply' in effect)) throw new Error('creating tokens calls no other host');
      const { change, reply } = effect;
      const made = change.entries.map((entry) => detailed(entry, source));
      return {
        change: { ...change, entries: [completedEntry(call, ended()), ...made] },
        reply: { status: 200, body: { tokens: reply.body ?? null, ...body } },
      };
    } catch (error) {
      if (!(error instanceof VaultError) || error.altered) throw error;
      return refused(failedEntry(call, ended(), untokenized), below('tokenize', error));
    }
  };
}

const untokenized = 'its result was not tokenized';

function failed(call: LoggedReactorCall, ended: CallEnd, { change, refusal }: Refused): Refused {
  const entries = [failedEntry(call, ended, untokenized), ...change.entries] as const;
  return { change: { ...change, entries }, refusal };
}
