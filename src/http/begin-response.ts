/** The beginning of every response: where its request comes from, and the headers that all carry. */
import { loopHeader } from '../lib/cdn-loop.ts';
import { traceparentOf } from '../lib/telemetry/trace-context.ts';
import type { Tracing } from '../lib/telemetry/tracing.ts';
import type { Cors } from './protocol/cors.ts';
import type { Exchange } from './protocol/exchange.ts';
import type { ServiceHeaders } from './protocol/headers.ts';

const traceIdForm = /^[\x21-\x7e]{1,100}$/;

export interface BeginResponseOptions {
  readonly headers: ServiceHeaders;
  readonly cors: Cors;
  readonly newTraceId: () => string;
  readonly tracing: Tracing;
}

/** Also for a request whose path was not even a path. */
export type BeginResponse = (exchange: Exchange) => void;

export function createBeginResponse({
  headers,
  cors,
  newTraceId,
  tracing,
}: BeginResponseOptions): BeginResponse {
  return (exchange) => {
    const dialect = headers.dialectOf(exchange.headers);
    const sent = headers.read(exchange.headers, 'trace-id');
    const trace = tracing.begin(headerOf(exchange, 'traceparent'));
    const own = sent !== undefined && traceIdForm.test(sent) ? sent : undefined;
    const traceId = own ?? trace?.traceId ?? newTraceId();
    const loop = headerOf(exchange, loopHeader);
    exchange.origin = { address: exchange.address, traceId, dialect, trace, loop };
    if (trace) {
      tracing.underWay?.set(traceId, trace);
      exchange.setHeader('traceparent', traceparentOf(trace));
    }
    exchange.setHeader(`${dialect.toLowerCase()}-trace-id`, traceId);
    exchange.setHeader('cache-control', 'no-store');
    exchange.setHeader('x-content-type-options', 'nosniff');
    if (exchange.headers.origin !== undefined) exchange.setHeaders(cors.headers);
  };
}

function headerOf({ headers }: Exchange, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}
