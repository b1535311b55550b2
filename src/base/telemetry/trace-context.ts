/** The place of a request in a trace that may span many services: W3C Trace Context, without `tracestate`. */
import type { Random } from '../random.ts';

export interface TraceContext {
  /** 32 hexadecimal digits, and 16 for the others. */
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string | undefined;
  /** Whether whoever began the trace records it. */
  readonly sampled: boolean;
}

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const headerLengthMax = 512;
const sampledFlag = 1;

/** A span of its own below the one that the header names; `undefined` for a header that is not valid. */
export function traceBelow(header: string, random: Random): TraceContext | undefined {
  if (header.length > headerLengthMax) return undefined;
  const [, version, traceId = '', parentId = '', flags = '', more] = form.exec(header) ?? [];
  const isKnown = version !== undefined && version !== 'ff' && (version !== '00' || !more);
  if (!isKnown || /^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined;
  const sampled = (Number.parseInt(flags, 16) & sampledFlag) !== 0;
  return { traceId, spanId: hexadecimal(random, 8), parentId, sampled };
}

/** The beginning of a trace that is recorded. */
export function newTrace(random: Random): TraceContext {
  return { traceId: hexadecimal(random, 16), spanId: hexadecimal(random, 8), sampled: true };
}

export function childOf({ traceId, spanId, sampled }: TraceContext, random: Random): TraceContext {
  return { traceId, spanId: hexadecimal(random, 8), parentId: spanId, sampled };
}

/** As the value of `traceparent`, for whoever continues below this span. */
export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

function hexadecimal(random: Random, bytes: number): string {
  return random(bytes).toString('hex');
}
