/** Traces of requests: which one a request belongs to, and what happens below it. */
import type { Random } from '../random.ts';
import type { Span, Spans } from './spans.ts';
import { childOf, newTrace, type TraceContext, traceBelow } from './trace-context.ts';

export interface Tracing {
  /** The request's own span; `undefined` where its client sent none and none is recorded. */
  begin(traceparent: string | undefined): TraceContext | undefined;
  child(trace: TraceContext): TraceContext;
  /** Where no collector is configured, nothing. */
  record(span: Span): void;
  /**
   * While a request is under way, its span by the trace id of its log entries. Absent without a collector.
   * Of two requests with one id only one is found.
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
