/** The beginning of every response: where its request comes from, and the headers that all carry. */
import { loopHeader } from '../base/cdn-loop.ts';
import { traceparentOf } from '../base/telemetry/trace-context.ts';
import type { Tracing } from '../base/telemetry/tracing.ts';
import type { Origin } from '../rules/caller.ts';
import { mayBeTraceId, productsOf } from './client-claims.ts';
import type { Cors } from './protocol/cors.ts';
import type { ServiceHeaders } from './protocol/headers.ts';
import { parseReason } from './protocol/reason.ts';
import type { RequestContext } from './protocol/request-context.ts';

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
    const own = sent !== undefined && mayBeTraceId(sent) ? sent : undefined;
    const traceId = own ?? trace?.traceId ?? newTraceId();
    const loop = headerOf(context, loopHeader);
    const { address, forwarded } = context;
    const userAgent = productsOf(headerOf(context, 'user-agent'));
    const reason = reasonOf(context, headers);
    context.origin = { address, traceId, dialect, trace, loop, userAgent, forwarded, ...reason };
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

/** A reason that is not valid is refused where the request is handled. */
function reasonOf(context: RequestContext, own: ServiceHeaders): Pick<Origin, 'reason'> {
  const sent = own.read(context.headers, 'reason');
  if (sent === undefined) return {};
  try {
    return { reason: parseReason(sent, own.nameAsSent(context.request, 'reason')) };
  } catch (error) {
    context.flaw = error;
    return {};
  }
}

function headerOf({ headers }: RequestContext, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}
