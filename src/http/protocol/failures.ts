/** Failures of requests: logged for the operator, and sent as problem documents. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorKinds, type VaultError } from '../../lib/errors.ts';
import type { Log } from '../../lib/telemetry/log.ts';
import type { Metrics } from '../../lib/telemetry/metrics.ts';
import { problemMediaType, problemOf, vaultErrorOf } from './problem.ts';

export interface Failures {
  /** Logs the failure for the operator, and gives it as the caller may see it. */
  logFailure(error: unknown, request: FastifyRequest): VaultError;
  /** Logs the failure and responds with it. */
  fail(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply;
}

export function createFailures(log: Log, metrics: Pick<Metrics, 'count'>): Failures {
  function logFailure(error: unknown, request: FastifyRequest): VaultError {
    const failure = vaultErrorOf(error);
    const { status } = errorKinds[failure.code];
    const fields = {
      method: request.method,
      status,
      code: failure.code,
      reason: failure.message,
      ...(request.routeOptions?.url !== undefined && { route: request.routeOptions.url }),
      ...(request.origin && { trace_id: request.origin.traceId }),
      ...(request.caller && { tenant_id: request.caller.tenant.id }),
    };
    if (failure.code === 'integrity') metrics.count('integrity_failures');
    if (status >= 500) log.error('request failed', fields);
    else log.debug('request refused', fields);
    return failure;
  }

  return {
    logFailure,
    fail: (error, request, reply) => {
      const failure = logFailure(error, request);
      // The reply's schema is for success; a problem document is serialized as it is.
      return reply
        .code(errorKinds[failure.code].status)
        .headers({ ...failure.headers, 'content-type': problemMediaType })
        .serializer((problem: unknown) => JSON.stringify(problem))
        .send(problemOf(failure));
    },
  };
}
