/** Calls to other hosts as spans of the request that makes them, whose trace the other host may continue. */
import { type TraceContext, traceparentOf } from '../lib/telemetry/trace-context.ts';
import type { Tracing } from '../lib/telemetry/tracing.ts';
import type { Outbound } from './call.ts';
import type { Forward } from './forward.ts';

export function tracedOutbound(outbound: Outbound, tracing: Tracing): Outbound {
  return (request) => {
    const { trace, method, headers } = request;
    if (trace === undefined) return outbound(request);
    return called(tracing, { trace, method }, (traceparent) =>
      outbound({ ...request, headers: { ...headers, traceparent } }),
    );
  };
}

/** The span ends with the head of the response. A `traceparent` among the headers is replaced. */
export function tracedForward(forward: Forward, tracing: Tracing): Forward {
  return (request) => {
    const { trace, method, headers } = request;
    if (trace === undefined) return forward(request);
    const others = headers.filter((_, at) => !isTraceparent(headers[at - (at % 2)]));
    return called(tracing, { trace, method }, (traceparent) =>
      forward({ ...request, headers: [...others, 'traceparent', traceparent] }),
    );
  };
}

function isTraceparent(name: string | undefined): boolean {
  return name?.toLowerCase() === 'traceparent';
}

interface TracedCall {
  readonly trace: TraceContext;
  readonly method: string;
}

/** Neither the host nor the path is in the span: a caller may choose both. */
async function called<A extends { readonly status: number }>(
  tracing: Tracing,
  { trace: parent, method }: TracedCall,
  call: (traceparent: string) => Promise<A>,
): Promise<A> {
  const trace = tracing.child(parent);
  const begun = performance.now();
  let status: number | undefined;
  try {
    const answer = await call(traceparentOf(trace));
    ({ status } = answer);
    return answer;
  } finally {
    const attributes = {
      'http.request.method': method,
      ...(status !== undefined && { 'http.response.status_code': status }),
    };
    const failed = status === undefined || status >= 400;
    const span = { trace, name: `${method} outbound`, kind: 'client' } as const;
    tracing.record({ ...span, attributes, failed, tookMs: performance.now() - begun });
  }
}
