/** Records calls to other hosts as spans of the request that makes them. The other host may continue the trace. */
import { traceparentOf } from '../base/telemetry/trace-context.ts';
import type { Tracing } from '../base/telemetry/tracing.ts';
import type { Forward } from './forward.ts';

/**
 * The span ends with the head of the response. A `traceparent` among the headers is replaced. The span has neither
 * the host nor the path, because a caller may choose both.
 */
export function tracedForward(forward: Forward, tracing: Tracing): Forward {
  return async (request) => {
    if (request.trace === undefined) return forward(request);
    const trace = tracing.child(request.trace);
    const { method, headers } = request;
    const others = headers.filter((_, at) => !isTraceparent(headers[at - (at % 2)]));
    const begun = performance.now();
    let status: number | undefined;
    try {
      const traced = [...others, 'traceparent', traceparentOf(trace)];
      const response = await forward({ ...request, headers: traced });
      ({ status } = response);
      return response;
    } finally {
      const attributes = {
        'http.request.method': method,
        ...(status !== undefined && { 'http.response.status_code': status }),
      };
      const failed = status === undefined || status >= 400;
      const span = { trace, name: `${method} outbound`, kind: 'client' } as const;
      tracing.record({ ...span, attributes, failed, tookMs: performance.now() - begun });
    }
  };
}

function isTraceparent(name: string | undefined): boolean {
  return name?.toLowerCase() === 'traceparent';
}
