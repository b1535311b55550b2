/** Calling a proxy: the request is checked and completed, sent, and what came of it committed. */
import type { Readable } from 'node:stream';
import type { TextForm } from '../../expressions/request-texts/forms.ts';
import type { Clock } from '../../lib/clock.ts';
import type { VaultError } from '../../lib/errors.ts';
import type { Metrics } from '../../lib/telemetry/metrics.ts';
import { OutboundError } from '../../outbound/error.ts';
import type { Forward, ForwardAnswer } from '../../outbound/forward.ts';
import type { Caller } from '../../rules/caller.ts';
import type { Decide, DecideOutcome } from '../../rules/operation.ts';
import type { CalledProxy } from './called-proxy.ts';
import { type CallPath, destinationOf } from './destination.ts';
import { failedEntry, respondedEntry } from './entries.ts';
import { failureOfCall } from './failures.ts';

export interface ProxyCall extends CallPath {
  readonly caller: Caller;
  readonly proxy: CalledProxy;
  readonly method: string;
  /** Names and values in turn, without those that are for the vault. */
  readonly headers: readonly string[];
  readonly hopHeaders: readonly string[];
  readonly body: CallBody;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
}

export interface CallBody {
  /** Whole, or as it arrives; a stream holds no expressions. */
  readonly content: Uint8Array | Readable | undefined;
  /** Of a whole body that is text. */
  readonly form: TextForm | undefined;
  /** Why a stream ended early, where its sender or its contents are the reason. */
  readonly failure: () => VaultError | undefined;
}

export type ProxyAnswer = ForwardAnswer;

export interface ProxyCalling {
  readonly clock: Clock;
  readonly forward: Forward;
  readonly metrics: Pick<Metrics, 'proxyCall'>;
}

/** From the decision what {@link failureOfCall} says of a request that could not be sent. */
export function callProxy(tools: ProxyCalling, call: ProxyCall): Decide<ProxyAnswer> {
  return async () => ({ reachOut: () => send(tools, call) });
}

async function send(
  { clock, forward, metrics }: ProxyCalling,
  call: ProxyCall,
): Promise<DecideOutcome<ProxyAnswer>> {
  const { proxy, body } = call;
  const began = performance.now();
  const ended = (status: number | undefined) => {
    const milliseconds = Math.round(performance.now() - began);
    metrics.proxyCall({ proxy: proxy.id, status, seconds: milliseconds / 1000 });
    return { now: clock.now(), milliseconds };
  };
  try {
    const answer = await forward({
      method: call.method,
      ...destinationOf(proxy, call),
      headers: call.headers,
      hopHeaders: call.hopHeaders,
      body: body.content,
      timeoutMs: proxy.timeoutMs,
      partition: proxy.tenant.id,
      clientCertificate: proxy.clientCertificate?.reveal(),
      signal: call.signal,
    });
    const entry = respondedEntry(call, ended(answer.status), answer.status);
    return async () => ({ change: { entries: [entry] }, reply: answer });
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    const refusal = body.failure() ?? failureOfCall(error, proxy);
    const entry = failedEntry(call, ended(undefined), error.message);
    return async () => ({ change: { entries: [entry] }, refusal });
  }
}
