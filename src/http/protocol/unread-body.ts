/**
 * A body that is still arriving when its response is ready. A proxy may send the next request on that connection,
 * behind what it has sent of the body, where it would be taken for the rest of it. So either all of the
 * body is read before the response leaves, or nothing else is read from the connection.
 */
import type { IncomingMessage } from 'node:http';
import { second } from '../../lib/clock.ts';

/** How much of a body is read and discarded before the response, and how long that may take. */
export const discarded = { bytesMax: 65_536, msMax: second } as const;

/**
 * The same after a response that ends the connection. Data that arrives at a closed connection resets it, and the
 * client, which may send all of its body before it reads, would lose the response.
 */
export const lingering = { bytesMax: 8 * 1_048_576, msMax: second } as const;

export interface DiscardLimits {
  readonly bytesMax: number;
  readonly msMax: number;
}

export function isUnread({ complete, destroyed, headers }: IncomingMessage): boolean {
  if (complete || destroyed) return false;
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return encoding !== undefined || length !== '0';
}

/** Whether the body is so short that reading it is worth the time. */
export function mayBeShort({ headers }: IncomingMessage): boolean {
  return !(Number(headers['content-length']) > discarded.bytesMax);
}

/** Resolves when the body or its connection has ended, or a limit is reached. */
export function discard(
  request: IncomingMessage,
  { bytesMax, msMax }: DiscardLimits,
): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    const count = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bytesMax) end();
    };
    const end = () => {
      clearTimeout(timer);
      request.off('data', count).off('end', end).off('close', end).off('error', end);
      resolve();
    };
    const timer = setTimeout(end, msMax);
    request.on('data', count).once('end', end).once('close', end).once('error', end);
  });
}
