/** The beginning of every response: where its request comes from, and the headers that all carry. */
import { loopHeader } from '../base/cdn-loop.ts';
import { traceparentOf } from '../base/telemetry/trace-context.ts';
import type { Tracing } from '../base/telemetry/tracing.ts';
import type { Cors } from './protocol/cors.ts';
import type { ServiceHeaders } from './protocol/headers.ts';
import type { RequestContext } from './protocol/request-context.ts';

const traceIdForm = /^[\x21-\x7e]{1,100}$/;

export interface BeginResponseOptions {
  readonly headers: ServiceHeaders;
  readonly cors: Cors;
  readonly newTraceId: () => string;
  readonly tracing: Tracing;
}

/** Also runs for a request whose path is malformed. */
export type BeginResponse = (context: RequestContext) => void;

export function createBeginResponse({
  headers,
  cors,
  newTraceId,
  tracing,
}: BeginResponseOptions): BeginResponse {
  return (context) => {
    const dialect = headers.dialectOf(context.headers);
    const sent = headers.read(context.headers, 'trace-id');
    const trace = tracing.begin(headerOf(context, 'traceparent'));
    const own = sent !== undefined && traceIdForm.test(sent) ? sent : undefined;
    const traceId = own ?? trace?.traceId ?? newTraceId();
    const loop = headerOf(context, loopHeader);
    context.origin = { address: context.address, traceId, dialect, trace, loop };
    if (trace) {
      tracing.underWay?.set(traceId, trace);
      context.setHeader('traceparent', traceparentOf(trace));
    }
    context.setHeader(`${dialect.toLowerCase()}-trace-id`, traceId);
    context.setHeader('cache-control', 'no-store');
    context.setHeader('x-content-type-options', 'nosniff');
    if (context.headers.origin !== undefined) context.setHeaders(cors.headers);
  };
}

function headerOf({ headers }: RequestContext, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}
