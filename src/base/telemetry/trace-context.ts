/** The position of a request in a trace that may span many services: W3C Trace Context, without `tracestate`. */
import type { Random } from '../random.ts';

export interface TraceContext {
  /** 32 hexadecimal digits. The other ids have 16. */
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string | undefined;
  /** Whether the service that began the trace records it. */
  readonly sampled: boolean;
}

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const headerLengthMax = 512;
const sampledFlag = 1;

/** A new child span of the span that the header names; `undefined` if the header is not valid. */
export function traceBelow(header: string, random: Random): TraceContext | undefined {
  if (header.length > headerLengthMax) return undefined;
  const [, version, traceId = '', parentId = '', flags = '', more] = form.exec(header) ?? [];
  const isKnown = version !== undefined && version !== 'ff' && (version !== '00' || !more);
  if (!isKnown || /^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined;
  const sampled = (Number.parseInt(flags, 16) & sampledFlag) !== 0;
  return { traceId, spanId: hexadecimal(random, 8), parentId, sampled };
}

/** The root of a new recorded trace. */
export function newTrace(random: Random): TraceContext {
  return { traceId: hexadecimal(random, 16), spanId: hexadecimal(random, 8), sampled: true };
}

export function childOf({ traceId, spanId, sampled }: TraceContext, random: Random): TraceContext {
  return { traceId, spanId: hexadecimal(random, 8), parentId: spanId, sampled };
}

/** The value of the `traceparent` header for services that continue the trace. */
export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

function hexadecimal(random: Random, bytes: number): string {
  return random(bytes).toString('hex');
}
