/** Exports spans to an OpenTelemetry collector: in batches, bounded, and without delaying requests. */
import { setTimeout as pause } from 'node:timers/promises';
import { second } from '../clock.ts';
import type { TraceContext } from './trace-context.ts';

/** Numbers of the OTLP protocol. */
const kinds = { internal: 1, server: 2, client: 3 } as const;
const failedStatus = 2;

/** An operation that has just ended. Its name and attributes are ours: routes rather than paths, and no values. */
export interface Span {
  readonly trace: TraceContext;
  readonly name: string;
  readonly kind: keyof typeof kinds;
  readonly tookMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly failed: boolean;
}

export interface Spans {
  /** Returns immediately, even if the span cannot be exported. */
  record(span: Span): void;
  /** Sends the queued spans once. Spans that a slow collector does not accept in time are lost. */
  close(): Promise<void>;
}

export interface SpansOptions {
  /** Sends the JSON of a batch. Rejects if the collector does not accept it. */
  readonly send: (batch: string) => Promise<void>;
  /** Called with the number of spans that will not be delivered. */
  readonly onLost: (count: number) => void;
  /** The version of the service. */
  readonly version: string;
}

/** The maximum number of queued spans. While the collector is slow or unavailable, further spans are lost. */
export const spansWaitingMax = 4_096;
export const spansPerBatchMax = 512;
const batchEveryMs = second;
const closeMsMax = second;

export function createSpans({ send, onLost, version }: SpansOptions): Spans {
  let waiting: object[] = [];
  let timer: NodeJS.Timeout | undefined;
  let sending: Promise<void> | undefined;

  async function run(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, spansPerBatchMax);
      waiting = waiting.slice(spansPerBatchMax);
      // A failed batch is not retried, because newer spans need its room.
      await send(textOf(batch, version)).catch(() => onLost(batch.length));
    }
    sending = undefined;
  }

  return {
    record: (span) => {
      if (!span.trace.sampled) return;
      if (waiting.length >= spansWaitingMax) {
        onLost(1);
        return;
      }
      waiting.push(encoded(span));
      if (sending) return;
      if (waiting.length >= spansPerBatchMax) sending = run();
      else timer ??= setTimeout(() => (sending ??= run()), batchEveryMs).unref();
    },
    close: async () => {
      const sent = (sending ?? Promise.resolve()).then(run);
      await Promise.race([sent, pause(closeMsMax, undefined, { ref: false })]);
    },
  };
}

function encoded({ trace, name, kind, tookMs, attributes, failed }: Span): object {
  const endMs = performance.timeOrigin + performance.now();
  return {
    traceId: trace.traceId,
    spanId: trace.spanId,
    ...(trace.parentId !== undefined && { parentSpanId: trace.parentId }),
    name,
    kind: kinds[kind],
    startTimeUnixNano: nanosecondsOf(endMs - tookMs),
    endTimeUnixNano: nanosecondsOf(endMs),
    attributes: attributesOf(attributes),
    ...(failed && { status: { code: failedStatus } }),
  };
}

/** As a string: the number exceeds the range of a double. */
function nanosecondsOf(milliseconds: number): string {
  return String(BigInt(Math.round(milliseconds * 1000)) * 1000n);
}

function attributesOf(attributes: Span['attributes']): object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));
}

/** The body of `POST /v1/traces`. */
function textOf(spans: readonly object[], version: string): string {
  const service = { 'service.name': 'strongroom', 'service.version': version };
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: attributesOf(service) },
        scopeSpans: [{ scope: { name: 'strongroom' }, spans }],
      },
    ],
  });
}
