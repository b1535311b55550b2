/** The body of a forwarded request: how it is announced, and how a stream of it is sent. */
import type { ClientRequest } from 'node:http';
import { Readable } from 'node:stream';
import { OutboundError } from './error.ts';
import type { SlotLimit } from './slots.ts';

/** Methods for which no body at all is usual, so that its length is not announced as 0. */
const bodiless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE']);

const lengthForm = /^[0-9]{1,15}$/;

export interface BodyDescription {
  readonly method: string;
  readonly body: Readable | Uint8Array | undefined;
  /** Every Content-Length that was given. */
  readonly lengths: readonly string[];
}

/** The one header that says where the body ends. */
export function framingOf({ method, body, lengths }: BodyDescription): readonly string[] {
  if (body === undefined || body instanceof Uint8Array) {
    const length = body?.length ?? 0;
    return length === 0 && bodiless.has(method) ? [] : ['Content-Length', String(length)];
  }
  const length = announcedLength(lengths);
  if (length === undefined) return ['Transfer-Encoding', 'chunked'];
  return ['Content-Length', String(length)];
}

/** `undefined` unless exactly one length was given, and it is one. */
export function announcedLength([length, ...others]: readonly string[]): number | undefined {
  if (length === undefined || others.length > 0 || !lengthForm.test(length)) return undefined;
  return Number(length);
}

/**
 * Waits until there is something of a body to send, so that a caller who is slow to send it takes no place from
 * others. What ends it early is found when it is sent.
 * @throws what ends the wait.
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
 * Reads no faster than the host takes it. A body that breaks off, or has another length than it
 * announced, closes the connection. The body itself is never destroyed: where it comes from a caller,
 * that would close the connection on which the caller is to learn what happened.
 */
export function sendStream(client: ClientRequest, body: Readable, length?: number): void {
  let sent = 0;
  const breakOff = () => {
    body.unpipe(client);
    client.destroy(new OutboundError('aborted'));
  };
  // Before `pipe` adds its own listeners, so that neither a byte too many nor an early end is sent.
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
