/** One attempt to deliver: a request, of whose response the status counts and nothing else. */

import { valuesOf } from '../../outbound/end-to-end.ts';
import { OutboundError } from '../../outbound/error.ts';
import type { Forward } from '../../outbound/forward.ts';
import type { Message } from './message.ts';

/** From the look-up of the receiver's name to the head of its response. */
const attemptMsMax = 15_000;

/** Of a response, so that its connection can be used again. A receiver that sends more loses the connection. */
export const responseBytesMax = 65_536;
const responseMsMax = 1_000;

export interface Outcome {
  /** `undefined` where nobody responded. */
  readonly status: number | undefined;
  /** Until the head of the response. */
  readonly milliseconds: number;
  /** The kind of failure, in a word; `undefined` after a success. */
  readonly error: string | undefined;
  /** The header, as it was sent. */
  readonly retryAfter: string | undefined;
}

export interface Attempted {
  readonly url: URL;
  readonly message: Message;
  /** The `CDN-Loop` of the request that caused the event: a receiver may be a vault that it came through. */
  readonly loop?: string | undefined;
  /** Receivers of two tenants never share a connection. */
  readonly tenant: string;
  /** Aborted when the process stops. */
  readonly signal?: AbortSignal;
  /** Instead of {@link attemptMsMax}. */
  readonly timeoutMs?: number;
}

/** Never throws: whatever goes wrong is an outcome. Resolves once the connection is free again, or closed. */
export async function attempt(
  forward: Forward,
  { url, message, loop, tenant, signal, timeoutMs = attemptMsMax }: Attempted,
): Promise<Outcome> {
  const begun = performance.now();
  const milliseconds = () => Math.round(performance.now() - begun);
  try {
    const { headers, body } = message;
    const response = await forward({
      method: 'POST',
      url,
      headers,
      body,
      timeoutMs,
      partition: tenant,
      loop,
      repeatable: true,
      signal,
    });
    const { status } = response;
    const isSuccess = status >= 200 && status <= 299;
    const outcome = {
      status,
      milliseconds: milliseconds(),
      error: isSuccess ? undefined : 'status',
      retryAfter: isSuccess ? undefined : valuesOf(response.headers, 'retry-after')[0],
    };
    // What the receiver says is of no interest, and never stored.
    await response.drop({ bytesMax: responseBytesMax, timeoutMs: responseMsMax });
    return outcome;
  } catch (error) {
    const reason = error instanceof OutboundError ? error.reason : 'internal';
    return {
      status: undefined,
      milliseconds: milliseconds(),
      error: reason,
      retryAfter: undefined,
    };
  }
}
