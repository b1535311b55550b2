/** Failures of requests: logged for the operator, and sent as problem documents. */
import { type ErrorCode, errorKinds, type VaultError } from '../../base/errors.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { Metrics } from '../../base/telemetry/metrics.ts';
import type { CounterName } from '../../base/telemetry/thread-metrics.ts';
import { problemMediaType, problemOf, vaultErrorOf } from './problem.ts';
import { jsonMediaType, type RequestContext } from './request-context.ts';

export interface Failures {
  /** Logs the failure for the operator, and gives it as the caller may see it. */
  logFailure(error: unknown, context: RequestContext): VaultError;
  /** Logs the failure and responds with it, or cuts the connection where a response has begun. */
  fail(error: unknown, context: RequestContext): void;
}

const countedAs: Partial<Record<ErrorCode, CounterName>> = {
  insufficient_storage: 'storage_refused',
  integrity: 'integrity_failures',
  overloaded: 'overloaded',
  too_many_requests: 'rate_limited',
};

/** Failures of another host, or of a tenant's code or configuration: nothing that the operator has to repair. */
const elsewhere: ReadonlySet<ErrorCode> = new Set([
  'bad_gateway',
  'loop_detected',
  'reactor_failed',
  'reactor_unavailable',
]);

export function createFailures(log: Log, metrics: Pick<Metrics, 'count'>): Failures {
  function logFailure(error: unknown, context: RequestContext): VaultError {
    const failure = vaultErrorOf(error);
    const { status } = errorKinds[failure.code];
    const fields = {
      method: context.method,
      status,
      code: failure.code,
      reason: failure.message,
      ...(context.route !== undefined && { route: context.route }),
      ...(context.origin && { trace_id: context.origin.traceId }),
      ...(context.caller && { tenant_id: context.caller.tenant.id }),
    };
    const counter = countedAs[failure.code];
    if (counter) metrics.count(counter);
    if (elsewhere.has(failure.code)) log.info('request failed at another host or in code', fields);
    else if (status >= 500) log.error('request failed', fields);
    else log.debug('request refused', fields);
    return failure;
  }

  return {
    logFailure,
    fail: (error, context) => {
      const failure = logFailure(error, context);
      if (context.response.headersSent) {
        context.response.destroy();
        return;
      }
      const { status } = errorKinds[failure.code];
      try {
        context.setHeaders(failure.headers ?? {});
        const problem = problemOf(failure);
        if (!context.isProxyCall) {
          context.send(status, JSON.stringify(problem), problemMediaType);
        } else {
          context.send(status, JSON.stringify({ proxy_error: problem }), jsonMediaType);
        }
      } catch {
        // Nothing else catches this error, and an uncaught error ends the process.
        context.response.destroy();
      }
    },
  };
}
