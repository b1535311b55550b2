/** TLS in front of a PostgreSQL that has none, as PostgreSQL itself negotiates it. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { CertificateFiles } from './certificate.ts';
import type { Lender } from './temporary.ts';

/** Length and code of the SSLRequest message. */
const requestBytes = 8;

/** Gives the port on which the server behind the URL is reached over TLS. */
export async function startTlsFront(
  t: Lender,
  databaseUrl: string,
  { certFile, keyFile }: CertificateFiles,
): Promise<number> {
  const { hostname, port } = new URL(databaseUrl);
  const [cert, key] = [readFileSync(certFile), readFileSync(keyFile)];
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    keep(client);
    client.once('readable', () => {
      client.read(requestBytes);
      client.write('S');
      const secure = new TLSSocket(client, { isServer: true, cert, key });
      const behind = connect(Number(port), hostname);
      keep(secure);
      keep(behind);
      secure.pipe(behind).pipe(secure);
      secure.on('close', () => behind.destroy());
    });
  });
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
