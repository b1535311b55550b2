/** One delivery attempt: a request whose outcome depends only on the status of the response. */

import { valuesOf } from '../../outbound/end-to-end.ts';
import { OutboundError } from '../../outbound/error.ts';
import type { Forward } from '../../outbound/forward.ts';
import type { Message } from './message.ts';

/** From the DNS lookup of the receiver to the headers of its response. */
const attemptMsMax = 15_000;

/**
 * Response bytes to read, so that the connection can be reused. If a receiver sends more, the connection is closed.
 */
export const responseBytesMax = 65_536;
const responseMsMax = 1_000;

export interface Outcome {
  /** `undefined` if there was no response. */
  readonly status: number | undefined;
  /** The time until the headers of the response. */
  readonly milliseconds: number;
  /** The kind of failure, as one word; `undefined` after a success. */
  readonly error: string | undefined;
  /** The header as the receiver sent it. */
  readonly retryAfter: string | undefined;
}

export interface Attempted {
  readonly url: URL;
  readonly message: Message;
  /** The `CDN-Loop` of the request that caused the event: the receiver may be a vault that forwarded that request. */
  readonly loop?: string | undefined;
  /** Connections are never shared between tenants. */
  readonly tenant: string;
  /** Aborted if the process stops. */
  readonly signal?: AbortSignal;
  /** Replaces {@link attemptMsMax}. */
  readonly timeoutMs?: number;
}

/** Never throws: every failure is an outcome. Resolves once the connection is free again, or closed. */
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
    // The body of the receiver's response is never read or stored.
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
