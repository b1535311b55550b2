/** Sends a completed call once, and decides its outcome. */

import { callerNow } from '../../access/authority.ts';
import { type Clock, second } from '../../base/clock.ts';
import { type ErrorCode, VaultError } from '../../base/errors.ts';
import type { Metrics } from '../../base/telemetry/metrics.ts';
import { newEvaluation } from '../../expressions/evaluation/evaluation.ts';
import { OutboundError, type OutboundFailure } from '../../outbound/error.ts';
import type { Forward } from '../../outbound/forward.ts';
import type { CodeRunning } from '../../reactors/runs/run.ts';
import { type Caller, isKeyless } from '../../rules/caller.ts';
import type { DecideOutcome, Refused } from '../../rules/operation.ts';
import { holds } from '../../rules/policy.ts';
import { lacksPermission } from '../../rules/refusal.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { CodeTransform, ResponseTransform } from '../transforms/definitions.ts';
import type { Mask } from '../transforms/mask.ts';
import type { Masking } from '../transforms/masking.ts';
import { names, transformsOf } from '../transforms.ts';
import { egressId, ephemeralId } from './called-proxy.ts';
import { destinationOf } from './destination.ts';
import { failedEntry, respondedEntry } from './entries.ts';
import { withoutKeyThrough } from './holder.ts';
import { jsonOrText, jsonValuesMax } from './json-body.ts';
import { type MadeTokens, type MakingTokens, makeTokens } from './make-tokens.ts';
import type { ProxyCall, ProxyResponse, Writable } from './proxy-call.ts';
import { readResponseText, untransformable } from './response-body.ts';
import { errorsByNames } from './response-errors.ts';
import { type CodedMessage, codeResponse, type TransformOutcome } from './run-code.ts';
import { responseOf, transformResponse, valuesOf, withoutHeaders } from './transform-response.ts';

export interface SendTools extends MakingTokens, CodeRunning {
  readonly clock: Clock;
  readonly forward: Forward;
  readonly maskText: Masking['maskText'];
  readonly metrics: Pick<Metrics, 'proxyCall'>;
}

export interface SentCall {
  readonly call: ProxyCall;
  /** The parts that are sent in place of what the caller wrote. */
  readonly written: Writable;
  /** The tokens that request transforms created. */
  readonly made: MadeTokens;
}

/** A failure becomes part of the outcome, with its log entry. */
export async function send(
  tools: SendTools,
  sent: SentCall,
): Promise<DecideOutcome<ProxyResponse>> {
  const { clock, forward, metrics } = tools;
  const { call, written } = sent;
  const { proxy } = call;
  const transforms = transformsOf(proxy).response;
  const began = performance.now();
  const ended = (status: number | undefined) => {
    const milliseconds = Math.round(performance.now() - began);
    metrics.proxyCall({ proxy: proxy.id, status, seconds: milliseconds / 1000 });
    return { now: clock.now(), milliseconds };
  };
  try {
    if (proxy.hasSlowClientKey) throw new OutboundError('client_key');
    const response = await forward({
      method: call.method,
      ...destinationOf(proxy, written),
      headers: transforms.some(readsBody) ? readable(written.headers) : written.headers,
      hopHeaders: call.hopHeaders,
      body: written.body.content,
      timeoutMs: proxy.timeoutMs,
      partition: proxy.tenant.id,
      clientCertificate: proxy.clientCertificate?.reveal(),
      signal: call.signal,
      trace: call.caller.origin.trace,
      loop: call.caller.origin.loop,
      keyless: isKeyless(call.caller),
      upgrade: call.upgrade,
      ...(proxy.egress?.plain && { mayBePlain: true as const }),
    });
    const entry = respondedEntry(call, ended(response.status), response.status);
    const isSuccess = response.status >= 200 && response.status < 300;
    if (isSuccess && transforms.length > 0) return transformed(tools, sent, { response, entry });
    return async () => ({ change: { entries: [entry] }, reply: response });
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    const entry = failedEntry(call, ended(undefined), error.message);
    return refused(entry, call.body.failure() ?? failureOfCall(error, proxy));
  }
}

/** A header that does not depend on the body can be added to a response of any size. */
function readsBody(transform: ResponseTransform): boolean {
  return transform.type !== 'append_header' || names(transform, 'res');
}

/** In a partial body, a mask would miss a match that begins before it, and in UTF-16 every match. */
function readable(headers: readonly string[]): string[] {
  const unread = ['accept-encoding', 'accept-charset', 'range', 'if-range'];
  const whole = withoutHeaders(headers, unread);
  return [...whole, 'Accept-Encoding', 'identity'];
}

/** Uses the caller's current rights: the destination may have taken a minute. */
async function creatorNow(
  { store, clock }: SendTools,
  { caller, proxy }: ProxyCall,
): Promise<Caller> {
  // A call that describes its own proxy requires a key.
  const { id } = proxy;
  const hasNone = id === ephemeralId || id === egressId;
  const withoutKey = hasNone ? undefined : withoutKeyThrough(store, id);
  const current = await callerNow({ store, now: clock.now(), withoutKey }, caller);
  if (current && holds(current.policy, 'token:create')) return current;
  throw lacksPermission('token:create');
}

interface Responded {
  readonly response: ProxyResponse;
  readonly entry: LogEntry;
}

const bodiless: ReadonlySet<number> = new Set([204, 205]);

async function transformed(
  tools: SendTools,
  { call, made }: SentCall,
  { response, entry }: Responded,
): Promise<DecideOutcome<ProxyResponse>> {
  const transforms = transformsOf(call.proxy).response;
  const { configuration, tenant } = call.proxy;
  const masking = { partition: tenant.id, signal: call.signal };
  const evaluation = newEvaluation();
  const hasBody = call.method !== 'HEAD' && !bodiless.has(response.status);
  const isPassed = hasBody && !transforms.some(readsBody);
  try {
    const reading = {
      encodings: valuesOf(response.headers, 'content-encoding'),
      mediaTypes: valuesOf(response.headers, 'content-type'),
      hold: call.hold,
    };
    const text = hasBody && !isPassed ? await readResponseText(response.body, reading) : undefined;
    const isNamed = transforms.some((one) => names(one, 'res'));
    const tooMany = (reason: string) => untransformable(`it ${reason}`);
    const res =
      text !== undefined && isNamed
        ? await jsonOrText(text, { valuesMax: jsonValuesMax, tooMany })
        : undefined;
    const scope = {
      valueOf: () => undefined,
      ...(configuration && { config: Object.fromEntries(configuration.reveal()) }),
      ...(res !== undefined && { res }),
    };
    const making = transforms.flatMap((one) => (one.type === 'tokenize' ? [one] : []));
    const part = 'response_transforms';
    const make =
      making.length > 0 && text !== undefined
        ? makeTokens(tools, await creatorNow(tools, call), {
            transforms: making,
            scope,
            evaluation,
            part,
          })
        : undefined;
    // The code runs once, even if creating tokens meets a conflict.
    let coded: Promise<TransformOutcome> | undefined;
    const shape = async (tokens: MadeTokens) => {
      const given = {
        transforms,
        scope: { ...scope, transforms: tokens },
        evaluation,
        runCode: (transform: CodeTransform, message: CodedMessage) => {
          coded ??= codeResponse(tools, { call, transform }, { message, status: response.status });
          return coded;
        },
        maskText: (shown: string, mask: Mask) => tools.maskText(shown, mask, masking),
      };
      const shaped = await transformResponse({ headers: response.headers, text }, given);
      return isPassed ? { ...response, headers: shaped.headers } : responseOf(response, shaped);
    };
    return async (conflict) => {
      try {
        const outcome = await make?.(conflict);
        if (outcome && 'refusal' in outcome) {
          const refusal = failureOfResponse(outcome.refusal, call);
          return withEntry({ ...outcome, refusal }, entry);
        }
        const { change, reply = [] } = outcome ?? {};
        const shaped = await shape(new Map([...made, ...reply]));
        return {
          change: { ...change, entries: [entry, ...(change?.entries ?? [])] },
          reply: shaped,
        };
      } catch (error) {
        return { change: { entries: [entry] }, refusal: failureOfResponse(error, call) };
      }
    };
  } catch (error) {
    response.body.destroy();
    return refused(entry, failureOfResponse(error, call));
  }
}

/** Errors whose messages come from the vault itself, or which the proxy's code addresses to its callers. */
const said = /^(?:bad_gateway|overloaded|too_many_requests|unavailable|reactor_\w+)$/;

function failureOfResponse(error: unknown, { proxy, signal }: ProxyCall): VaultError {
  if (error instanceof OutboundError) return failureOfCall(error, proxy);
  // The caller does not receive this error, but the call's entry is committed.
  if (signal?.aborted && error === signal.reason) return untransformable('the caller has gone');
  if (!(error instanceof VaultError)) throw error;
  if (said.test(error.code)) return error;
  return untransformable(error.public, error.errors && errorsByNames(error.errors, proxy));
}

function refused(entry: LogEntry, refusal: VaultError): DecideOutcome<never> {
  return async () => ({ change: { entries: [entry] }, refusal });
}

function withEntry({ change, refusal }: Refused, entry: LogEntry): Refused {
  return { change: { ...change, entries: [entry, ...change.entries] }, refusal };
}

/** What callers see of a failure. Any other one is the destination's. */
const failureCodes: Readonly<Partial<Record<OutboundFailure, ErrorCode>>> = {
  timeout: 'request_timeout',
  busy: 'overloaded',
  forbidden_url: 'forbidden',
  forbidden_address: 'forbidden',
  invalid_request: 'invalid_proxy_request',
  aborted: 'malformed_request',
};

/** Reports the reason as a fixed string, without any part of the request or the response. */
function failureOfCall(
  { reason, message }: OutboundError,
  { timeoutMs }: { readonly timeoutMs: number },
): VaultError {
  const code = failureCodes[reason] ?? 'bad_gateway';
  const detail =
    reason === 'timeout'
      ? `The destination did not respond within ${timeoutMs / second} s.`
      : `The destination was not reached, or did not respond as it should: ${message}.`;
  return new VaultError(code, { public: detail, internal: `proxy call: ${message}` });
}
