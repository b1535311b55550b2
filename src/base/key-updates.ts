/**
 * How often the other side of a TLS 1.3 connection may change its keys (RFC 8446, section 4.6.3). A key update has 27
 * bytes and asks for one in return. OpenSSL handles all that have come before it gives back control, whatever their
 * number, so that a few connections would keep a thread busy for seconds without a single request.
 */
import type { TLSSocket } from 'node:tls';

/** Of one connection. Implementations change their keys after hundreds of gigabytes. */
export const keyUpdatesMax = 32;

/** The first word of a line of the key log (RFC 9850) that names a later key of a side. */
const laterKeyOf = {
  client: Buffer.from('CLIENT_TRAFFIC_SECRET_N '),
  server: Buffer.from('SERVER_TRAFFIC_SECRET_N '),
} as const;

/**
 * A listener of `keylog`: nothing else notices key updates, which are neither data nor a handshake. It looks at the
 * name of the key, and never at the key.
 *
 * @param end is called once, inside of the work of OpenSSL on the connection, when the limit is exceeded. It must stop
 *   reading, and destroy nothing before the next turn of the event loop.
 */
export function countKeyUpdates(
  side: keyof typeof laterKeyOf,
  end: (socket: TLSSocket) => void,
): (line: Buffer, socket: TLSSocket) => void {
  const label = laterKeyOf[side];
  const updates = new WeakMap<TLSSocket, number>();
  return (line, socket) => {
    if (line.compare(label, 0, label.length, 0, label.length) !== 0) return;
    const count = (updates.get(socket) ?? 0) + 1;
    updates.set(socket, count);
    if (count === keyUpdatesMax + 1) end(socket);
  };
}
