/** A connection within the process, which a server takes for one of a client. */
import { type Duplex, duplexPair } from 'node:stream';

/** As the servers of the vault look at connections. */
export interface InnerConnection {
  /** For the client. */
  readonly client: Duplex;
  /** For the server, which finds the address of the client there, and how many bytes it has read. */
  readonly server: Duplex;
}

/** @param within the connection of the client of whose requests this is one. */
export function innerConnection(address: string, within?: Duplex): InnerConnection {
  const [client, server] = duplexPair();
  let bytesRead = 0;
  const write = client._write.bind(client);
  client._write = (chunk: Buffer, encoding, done) => {
    bytesRead += chunk.length;
    write(chunk, encoding, done);
  };
  // Each side ends with the other, as a socket does.
  client.once('close', () => server.destroy());
  server.once('close', () => client.destroy());
  Object.defineProperties(server, {
    remoteAddress: { value: address },
    bytesRead: { get: () => bytesRead },
    within: { value: within },
  });
  return { client, server };
}
