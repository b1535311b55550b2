/** What the operator learns about each finished request: never its path, its query, or its body. */
import type { ActivityCounter } from '../access/activity/counting.ts';
import { second } from '../base/clock.ts';
import type { Log } from '../base/telemetry/log.ts';
import type { Metrics } from '../base/telemetry/metrics.ts';
import type { Tracing } from '../base/telemetry/tracing.ts';
import type { RequestContext } from './protocol/request-context.ts';

/** Called once for each request, when its response has ended or its connection is gone. */
export type OnExchangeEnd = (context: RequestContext, tookMs: number) => void;

export interface ObservingOptions {
  readonly metrics: Pick<Metrics, 'request'>;
  readonly log: Log;
  readonly accessLog: boolean;
  readonly tracing: Tracing;
  readonly activity: Pick<ActivityCounter, 'request'>;
}

/** Of a request that no route took. */
const noRoute = 'none';

/** The status of a request whose client left before its response began, as nginx writes it. */
const statusOfDeparted = 499;

export function observingRequests({
  metrics,
  log,
  accessLog,
  tracing,
  activity,
}: ObservingOptions): OnExchangeEnd {
  return (context, tookMs) => {
    const { method, route = noRoute } = context;
    const status = statusOf(context);
    if (context.caller) activity.request(context.caller.tenant.id, status, tookMs);
    metrics.request({ method, route, status, seconds: tookMs / second });
    if (tracing.underWay) recordSpan(context, tracing, tookMs);
    if (accessLog) log.info('request', { ...fieldsOf(context), duration_ms: Math.round(tookMs) });
  };
}

/** A request that the server itself cut off has another status than one whose client left. */
function statusOf({ response, cutOffStatus }: RequestContext): number {
  return response.headersSent ? response.statusCode : (cutOffStatus ?? statusOfDeparted);
}

function recordSpan(context: RequestContext, tracing: Tracing, tookMs: number): void {
  const { method, route, origin, caller } = context;
  if (origin?.trace === undefined) return;
  const { trace, traceId } = origin;
  if (tracing.underWay?.get(traceId) === trace) tracing.underWay.delete(traceId);
  const status = statusOf(context);
  tracing.record({
    trace,
    name: route === undefined ? method : `${method} ${route}`,
    kind: 'server',
    tookMs,
    attributes: {
      'http.request.method': method,
      ...(route !== undefined && { 'http.route': route }),
      'http.response.status_code': status,
      ...(caller && { 'strongroom.tenant.id': caller.tenant.id }),
    },
    failed: status >= 500,
  });
}

function fieldsOf(context: RequestContext) {
  const { method, route = noRoute, origin, caller } = context;
  return {
    method,
    route,
    status: statusOf(context),
    ...(origin && { trace_id: origin.traceId }),
    ...(caller && { tenant_id: caller.tenant.id, application_id: caller.application }),
  };
}
