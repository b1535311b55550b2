/** Reserves the listening address first: a start that cannot listen must leave nothing behind. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Config } from './config/config.ts';

export interface HeldAddress {
  /** Frees the address for the server. Until then no request is served. */
  release(): Promise<void>;
}

/**
 * Rejects with the system's error when the address is not this machine's or is taken, also by a server
 * whose threads share it: their sockets would not be refused one another.
 */
export async function holdAddress({
  host,
  port,
}: Pick<Config, 'host' | 'port'>): Promise<HeldAddress> {
  const server = createServer((socket) => socket.destroy());
  server.listen({ host, port, exclusive: true });
  await once(server, 'listening');
  let closed: Promise<unknown> | undefined;
  return {
    release: async () => {
      if (!closed) {
        closed = once(server, 'close');
        server.close();
      }
      await closed;
    },
  };
}
