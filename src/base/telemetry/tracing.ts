/** Traces of requests: which trace a request belongs to, and which operations it performs. */
import type { Random } from '../random.ts';
import type { Span, Spans } from './spans.ts';
import { childOf, newTrace, type TraceContext, traceBelow } from './trace-context.ts';

export interface Tracing {
  /** The request's own span; `undefined` if its client sent none and no traces are recorded. */
  begin(traceparent: string | undefined): TraceContext | undefined;
  child(trace: TraceContext): TraceContext;
  /** Does nothing if no collector is configured. */
  record(span: Span): void;
  /**
   * The spans of current requests by the trace id of their log entries. Absent without a collector. If two requests
   * have the same id, the map has only one of them.
   */
  readonly underWay: Map<string, TraceContext> | undefined;
}

export function createTracing(random: Random, spans: Spans | undefined): Tracing {
  return {
    begin: (traceparent) => {
      const trace = traceparent === undefined ? undefined : traceBelow(traceparent, random);
      return trace ?? (spans ? newTrace(random) : undefined);
    },
    child: (trace) => childOf(trace, random),
    record: (span) => spans?.record(span),
    underWay: spans && new Map(),
  };
}
