/** The body of a forwarded request: its framing headers, and how its stream is sent. */
import type { ClientRequest } from 'node:http';
import { Readable } from 'node:stream';
import { OutboundError } from './error.ts';
import type { SlotLimit } from './slots.ts';

/** Methods that usually have no body, so that a length of 0 is not announced. */
const bodiless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE']);

const lengthForm = /^[0-9]{1,15}$/;

export interface BodyDescription {
  readonly method: string;
  readonly body: Readable | Uint8Array | undefined;
  /** The values of all Content-Length headers. */
  readonly lengths: readonly string[];
}

/** Returns the one header that delimits the body. */
export function framingOf({ method, body, lengths }: BodyDescription): readonly string[] {
  if (body === undefined || body instanceof Uint8Array) {
    const length = body?.length ?? 0;
    return length === 0 && bodiless.has(method) ? [] : ['Content-Length', String(length)];
  }
  const length = announcedLength(lengths);
  if (length === undefined) return ['Transfer-Encoding', 'chunked'];
  return ['Content-Length', String(length)];
}

/** `undefined` unless there is exactly one length and it is valid. */
export function announcedLength([length, ...others]: readonly string[]): number | undefined {
  if (length === undefined || others.length > 0 || !lengthForm.test(length)) return undefined;
  return Number(length);
}

/**
 * Waits for the first bytes of the body, so that a slow caller does not occupy a slot. An early end of the body is
 * detected when it is sent.
 * @throws the reason that ends the wait.
 */
export function firstPart(
  body: Readable | Uint8Array | undefined,
  limit: SlotLimit,
): Promise<void> | undefined {
  if (!(body instanceof Readable)) return undefined;
  if (body.readableLength > 0 || body.readableEnded || body.destroyed) return undefined;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const { signal } = limit;
  const giveUp = () => reject(signal.reason);
  const begin = () => resolve();
  const events = ['readable', 'end', 'error', 'close'];
  for (const event of events) body.on(event, begin);
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  return promise.finally(() => {
    for (const event of events) body.off(event, begin);
    signal.removeEventListener('abort', giveUp);
  });
}

/**
 * Reads no faster than the host accepts data. If the body breaks off, or its length differs from the announced one,
 * the connection is closed. The body itself is never destroyed: if it comes from a caller, that would close the
 * connection on which the caller waits for the response.
 */
export function sendStream(client: ClientRequest, body: Readable, length?: number): void {
  let sent = 0;
  const breakOff = () => {
    body.unpipe(client);
    client.destroy(new OutboundError('aborted'));
  };
  // Added before the listeners of `pipe`, so that neither an excess byte nor an early end is sent.
  const count = (chunk: Uint8Array) => {
    sent += chunk.length;
    if (length !== undefined && sent > length) breakOff();
  };
  const finish = () => {
    body.off('close', breakOff);
    if (length !== undefined && sent !== length) breakOff();
  };
  const listeners = { data: count, end: finish, error: breakOff, close: breakOff };
  for (const [event, listener] of Object.entries(listeners)) body.on(event, listener);
  const leave = () => {
    body.unpipe(client);
    for (const [event, listener] of Object.entries(listeners)) body.off(event, listener);
  };
  client.once('error', leave).once('close', leave);
  if (body.destroyed && !body.readableEnded) breakOff();
  else body.pipe(client);
}
