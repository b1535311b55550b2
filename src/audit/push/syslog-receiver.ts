/**
 * A collector that takes syslog over TLS (RFC 5425). The protocol confirms nothing. The vault therefore ends the
 * connection after each batch, and counts the batch as delivered once the collector has ended it as well: by then it
 * has read everything. A collector that fails before that closes the connection early, resets it, or leaves it open,
 * and gets the batch again.
 */
import { once } from 'node:events';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { second } from '../../base/clock.ts';
import type { Trust } from '../../outbound/trust.ts';
import type { Receiver } from './push.ts';
import { frameOf, type SyslogSender } from './syslog-message.ts';

const connectMsMax = 10 * second;
/** For a batch, however slowly the collector reads. */
const batchMsMax = 60 * second;
/** In which a collector that fails over the batch closes the connection first. */
const graceMs = second / 4;

export interface SyslogReceiverOptions {
  /** `syslog+tls://host:port`. */
  readonly url: string;
  readonly trust: Trust;
}

export function syslogReceiver({ url, trust }: SyslogReceiverOptions): Receiver {
  const { hostname: name, port } = new URL(url);
  const host = name.replace(/^\[|\]$/g, '');
  const sender: SyslogSender = { host: hostname(), process: String(process.pid) };
  return {
    deliver: async (entries, signal) => {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(batchMsMax)]);
      const socket = connect({
        host,
        port: Number(port),
        ...(isIP(host) === 0 && { servername: host }),
        secureContext: trust().context,
      });
      const failed = once(socket, 'error').then(([error]) => Promise.reject(error));
      failed.catch(() => undefined);
      try {
        const opened = AbortSignal.any([limited, AbortSignal.timeout(connectMsMax)]);
        await Promise.race([once(socket, 'secureConnect', { signal: opened }), failed]);
        const frames = entries.map((one) => frameOf(one, sender)).join('');
        await Promise.race([confirmed(socket, frames, limited), failed]);
      } finally {
        socket.destroy();
      }
    },
  };
}

/**
 * Resolves once the collector has closed the connection after the vault did. One that closes it before, because it ends
 * or fails, may have read the batch without using it.
 */
async function confirmed(socket: TLSSocket, frames: string, signal: AbortSignal): Promise<void> {
  // What a collector sends means nothing here.
  socket.resume();
  let isEnded = false;
  const ended = once(socket, 'end', { signal }).then(() => {
    isEnded = true;
  });
  ended.catch(() => undefined);
  const sent = new Promise<void>((resolve) => {
    socket.write(frames, 'ascii', () => resolve());
  });
  await Promise.race([sent, ended]);
  await Promise.race([pause(graceMs, undefined, { signal }), ended]);
  if (isEnded) throw new Error('the collector closed the connection before the vault did');
  socket.end();
  await ended;
}
