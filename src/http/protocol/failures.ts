/** Failures of requests: logged for the operator, and sent as problem documents. */
import { type ErrorCode, errorKinds, type VaultError } from '../../lib/errors.ts';
import type { Log } from '../../lib/telemetry/log.ts';
import type { Metrics } from '../../lib/telemetry/metrics.ts';
import type { CounterName } from '../../lib/telemetry/thread-metrics.ts';
import { type Exchange, jsonMediaType } from './exchange.ts';
import { problemMediaType, problemOf, vaultErrorOf } from './problem.ts';

export interface Failures {
  /** Logs the failure for the operator, and gives it as the caller may see it. */
  logFailure(error: unknown, exchange: Exchange): VaultError;
  /** Logs the failure and responds with it, or cuts the connection where a response has begun. */
  fail(error: unknown, exchange: Exchange): void;
}

const countedAs: Partial<Record<ErrorCode, CounterName>> = {
  insufficient_storage: 'storage_refused',
  integrity: 'integrity_failures',
  overloaded: 'overloaded',
  too_many_requests: 'rate_limited',
};

export function createFailures(log: Log, metrics: Pick<Metrics, 'count'>): Failures {
  function logFailure(error: unknown, exchange: Exchange): VaultError {
    const failure = vaultErrorOf(error);
    const { status } = errorKinds[failure.code];
    const fields = {
      method: exchange.method,
      status,
      code: failure.code,
      reason: failure.message,
      ...(exchange.route !== undefined && { route: exchange.route }),
      ...(exchange.origin && { trace_id: exchange.origin.traceId }),
      ...(exchange.caller && { tenant_id: exchange.caller.tenant.id }),
    };
    const counter = countedAs[failure.code];
    if (counter) metrics.count(counter);
    if (status >= 500) log.error('request failed', fields);
    else log.debug('request refused', fields);
    return failure;
  }

  return {
    logFailure,
    fail: (error, exchange) => {
      const failure = logFailure(error, exchange);
      if (exchange.response.headersSent) {
        exchange.response.destroy();
        return;
      }
      const { status } = errorKinds[failure.code];
      try {
        exchange.setHeaders(failure.headers ?? {});
        const problem = problemOf(failure);
        if (!exchange.isProxyCall) {
          exchange.send(status, JSON.stringify(problem), problemMediaType);
        } else {
          exchange.send(status, JSON.stringify({ proxy_error: problem }), jsonMediaType);
        }
      } catch {
        // Nobody is left who would catch it, and an uncaught error ends the process.
        exchange.response.destroy();
      }
    },
  };
}
