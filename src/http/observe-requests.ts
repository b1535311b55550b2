/** What the operator learns of every request once it is over: never its path, its query or its body. */
import { second } from '../lib/clock.ts';
import type { Log } from '../lib/telemetry/log.ts';
import type { Metrics } from '../lib/telemetry/metrics.ts';
import type { Tracing } from '../lib/telemetry/tracing.ts';
import type { Exchange } from './protocol/exchange.ts';

/** Called once for each request, when its response has ended or its connection is gone. */
export type OnExchangeEnd = (exchange: Exchange, tookMs: number) => void;

export interface ObservingOptions {
  readonly metrics: Pick<Metrics, 'request'>;
  readonly log: Log;
  readonly accessLog: boolean;
  readonly tracing: Tracing;
}

/** Of a request that no route took. */
const noRoute = 'none';

/** Of a request whose connection ended before its response began, as nginx writes it. */
const statusOfDeparted = 499;

export function observingRequests({
  metrics,
  log,
  accessLog,
  tracing,
}: ObservingOptions): OnExchangeEnd {
  return (exchange, tookMs) => {
    const { method, route = noRoute, response } = exchange;
    const status = statusOf(response);
    metrics.request({ method, route, status, seconds: tookMs / second });
    if (tracing.underWay) recordSpan(exchange, tracing, tookMs);
    if (accessLog) log.info('request', { ...fieldsOf(exchange), duration_ms: Math.round(tookMs) });
  };
}

function statusOf({ headersSent, statusCode }: Exchange['response']): number {
  return headersSent ? statusCode : statusOfDeparted;
}

function recordSpan(exchange: Exchange, tracing: Tracing, tookMs: number): void {
  const { method, route, response, origin, caller } = exchange;
  if (origin?.trace === undefined) return;
  const { trace, traceId } = origin;
  if (tracing.underWay?.get(traceId) === trace) tracing.underWay.delete(traceId);
  const status = statusOf(response);
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

function fieldsOf({ method, route = noRoute, response, origin, caller }: Exchange) {
  return {
    method,
    route,
    status: statusOf(response),
    ...(origin && { trace_id: origin.traceId }),
    ...(caller && { tenant_id: caller.tenant.id, application_id: caller.application }),
  };
}
