/** Calling a proxy: references are replaced with values, and the log records this before anything is sent. */

import type { EncryptedTools } from '../../access/client-keys/use-encrypted.ts';
import type { Clock } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { type Evaluation, newEvaluation } from '../../expressions/evaluation/evaluation.ts';
import type { RequestScope } from '../../expressions/request-parts/scope.ts';
import { refusalWhereOff } from '../../reactors/code/check.ts';
import { isOfServer } from '../../rules/caller.ts';
import type { CompletedOperation, Decide, Effect, Refused } from '../../rules/operation.ts';
import { holds } from '../../rules/policy.ts';
import { deny, refuse } from '../../rules/refusal.ts';
import type { Change, Precondition } from '../../store/change.ts';
import { names, transformsOf } from '../transforms.ts';
import { readCallTexts, textOf } from './call-texts.ts';
import { invalidCall } from './called-proxy.ts';
import { type EncryptedData, openEncryptedData } from './encrypted-data.ts';
import { jsonOrText, jsonValuesMax, publicJsonValuesMax } from './json-body.ts';
import { type MadeTokens, type MakingTokens, makeTokens } from './make-tokens.ts';
import type { CallTexts, ProxyCall, ProxyResponse, Writable } from './proxy-call.ts';
import { type SendTools, send } from './send.ts';
import { sendCoded } from './send-coded.ts';
import { useTokens } from './use-tokens.ts';

export interface ProxyCalling extends SendTools, MakingTokens, EncryptedTools {
  readonly clock: Clock;
}

const nothingMade: MadeTokens = new Map();

/**
 * The decision throws `invalid_proxy_request` for expressions that cannot be parsed or evaluated, and for tokens that
 * do not exist or are too many; `forbidden` for tokens that the caller may not use; and the errors of sending.
 */
export function callProxy(tools: ProxyCalling, call: ProxyCall): Decide<ProxyResponse> {
  const transforms = transformsOf(call.proxy);
  const all = [...transforms.request, ...transforms.response];
  const makes = all.some(({ type }) => type === 'tokenize');
  const coded = all.some(({ type }) => type === 'code');
  let read: Promise<CallTexts | undefined> | undefined;
  return async (conflict) => {
    const { caller, proxy } = call;
    const invoking = { entity: 'proxy', id: proxy.id, operation: 'invoke' } as const;
    const isOff = coded && refusalWhereOff(tools, caller, invoking);
    if (isOff) return isOff;
    if (makes && !holds(caller.policy, 'token:create')) {
      const refusal = { entity: 'token', id: '*', permission: 'token:create' } as const;
      return refuse(caller, tools.clock.now(), refusal);
    }
    read ??= readTexts(call);
    const texts = await read.catch((error: unknown) => {
      if (call.readPlaceholders && error instanceof VaultError) return error;
      throw error;
    });
    if (texts instanceof VaultError) return deny(caller, tools.clock.now(), invoking, texts);
    if (texts === undefined && transforms.request.length === 0) {
      return { reachOut: () => send(tools, { call, written: call, made: nothingMade }) };
    }
    return completed(tools, { call, texts, conflict });
  };
}

/** Programs behind the address for egress hold placeholders, and no expressions. */
async function readTexts(call: ProxyCall): Promise<CallTexts | undefined> {
  if (call.readPlaceholders) return call.readPlaceholders(call);
  return call.proxy.disableDetokenization ? undefined : readCallTexts(call);
}

interface CallCompletion {
  readonly call: ProxyCall;
  readonly texts: CallTexts | undefined;
  readonly conflict: Precondition | undefined;
}

/** Includes the entries for encrypted data, even if nothing is sent in the end. */
async function completed(
  tools: ProxyCalling,
  completion: CallCompletion,
): Promise<Effect<ProxyResponse>> {
  const encrypted = await openEncryptedData(tools, completion.call);
  if ('refusal' in encrypted) return encrypted;
  const effect = await completedWith(tools, completion, encrypted.value);
  const refused = 'refusal' in effect;
  const [first, ...others] = [
    ...(effect.change?.entries ?? []),
    ...(refused ? encrypted.failures : encrypted.entries),
  ];
  if (first === undefined) return effect;
  const entries = [first, ...others] as const;
  if (refused) return { ...effect, change: { ...effect.change, entries } };
  const insert = { ...effect.change?.insert, client_key_uses: encrypted.uses };
  return { ...effect, change: { ...effect.change, insert, entries } };
}

/** The complete request to send, with its log entries. */
async function completedWith(
  tools: ProxyCalling,
  { call, texts, conflict }: CallCompletion,
  encrypted: EncryptedData['value'],
): Promise<Effect<ProxyResponse>> {
  const evaluation = newEvaluation();
  const scope = scopeOf(call, encrypted);
  const making = await madeFor(tools, call, { scope, evaluation, conflict });
  if ('refusal' in making) return making;
  const now = tools.clock.now();
  const references = texts?.references ?? [];
  const used = await useTokens(tools, call, { references, now, evaluation });
  if ('refusal' in used) return used;
  const { valueOf: given, failures } = used;
  const seen = { ...scope, valueOf: given, failures, transforms: making.reply };
  const outcome = attempt(() => texts?.write(seen, evaluation) ?? call);
  // Whether an expression fails may depend on a token or on the configuration, so the log records every attempt.
  if (outcome instanceof VaultError) return { change: { entries: used.unused }, refusal: outcome };
  const [first, ...others] = [...(making.change?.entries ?? []), ...used.entries()];
  return {
    ...(first && { change: { ...making.change, entries: [first, ...others] } }),
    reachOut: () => sendCoded(tools, { call, written: outcome, made: making.reply }),
  };
}

function scopeOf(call: ProxyCall, encrypted: EncryptedData['value']): RequestScope {
  const { configuration } = call.proxy;
  return {
    valueOf: () => undefined,
    request: { headers: namedHeaders(call.headers) },
    ...(configuration && { config: Object.fromEntries(configuration.reveal()) }),
    ...(encrypted !== undefined && { encrypted }),
  };
}

/** Headers by name, as the client sent them; the first if there are several. */
function namedHeaders(headers: readonly string[]): Readonly<Record<string, string>> {
  const pairs = headers.flatMap((name, at) =>
    at % 2 === 0 ? [[name, headers[at + 1] ?? ''] as const] : [],
  );
  return Object.fromEntries(pairs.reverse());
}

interface TokenMaking {
  readonly scope: RequestScope;
  readonly evaluation: Evaluation;
  readonly conflict: Precondition | undefined;
}

type TokensMade = Omit<CompletedOperation<MadeTokens>, 'change'> & { readonly change?: Change };

/** The tokens that the request transforms create from the caller's data. */
async function madeFor(
  tools: ProxyCalling,
  call: ProxyCall,
  { scope, evaluation, conflict }: TokenMaking,
): Promise<TokensMade | Refused> {
  const transforms = transformsOf(call.proxy).request.filter((one) => one.type === 'tokenize');
  if (transforms.length === 0) return { reply: nothingMade };
  const text = transforms.some((one) => names(one, 'proxy')) ? textOf(call) : undefined;
  const tooMany = (reason: string) => invalidCall('body', reason);
  const valuesMax = isOfServer(call.caller) ? jsonValuesMax : publicJsonValuesMax;
  const body = text === undefined ? {} : { body: await jsonOrText(text, { valuesMax, tooMany }) };
  const headers = namedHeaders(call.headers);
  const seen = { ...scope, request: { headers, ...body } };
  const part = 'request_transforms';
  return makeTokens(tools, call.caller, { transforms, scope: seen, evaluation, part })(conflict);
}

function attempt(write: () => Writable): Writable | VaultError {
  try {
    return write();
  } catch (error) {
    // A row that was altered outside the vault has an entry of its own.
    if (error instanceof VaultError && !error.altered) return error;
    throw error;
  }
}
