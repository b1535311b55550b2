/** A response that the code of a proxy makes, in the form that callers receive. */
import { Readable } from 'node:stream';
import type { CodeResponse } from '../../reactors/runs/outcome.ts';
import type { ProxyResponse } from './proxy-call.ts';

const framing =
  /^(?:content-length|content-encoding|transfer-encoding|connection|keep-alive|te|trailer|upgrade)$/i;

/** @param destinationStatus null if the destination was not called. */
export function madeResponse(
  { status, headers, body }: CodeResponse,
  destinationStatus: number | null,
): ProxyResponse {
  const named = Object.entries(headers).filter(([name]) => !framing.test(name));
  const isText = typeof body === 'string';
  const hasType = named.some(([name]) => name.toLowerCase() === 'content-type');
  const hasBody = body !== undefined && body !== null && status !== 204 && status !== 304;
  const bytes = hasBody ? Buffer.from(isText ? body : JSON.stringify(body)) : undefined;
  const type = isText ? 'text/plain; charset=utf-8' : 'application/json; charset=utf-8';
  return {
    status,
    headers: [
      ...named.flat(),
      ...(bytes && !hasType ? ['Content-Type', type] : []),
      ...(bytes ? ['Content-Length', String(bytes.length)] : []),
    ],
    body: Readable.from(bytes && bytes.length > 0 ? [bytes] : [], { objectMode: false }),
    trailers: () => [],
    destinationStatus,
  };
}
