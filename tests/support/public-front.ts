/** HTTPS in front of a vault, as a proxy of the operator has it, and a browser that finds it under a public name. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { createServer } from 'node:tls';
import { startBrowser } from './browser.ts';
import { writeCertificate } from './certificate.ts';
import { type Lender, temporaryDirectory } from './temporary.ts';

/** Under which people reach the vault. */
export const publicOrigin = 'https://vault.test';

/** A browser for which {@link publicOrigin} is the vault at that address. */
export async function startPublicBrowser(t: Lender, vaultUrl: string) {
  const port = await startFront(t, Number(new URL(vaultUrl).port));
  const rules = `--host-resolver-rules=MAP vault.test:443 127.0.0.1:${port}`;
  return startBrowser(t, [rules, '--ignore-certificate-errors']);
}

async function startFront(t: Lender, vaultPort: number): Promise<number> {
  const { certFile, keyFile } = writeCertificate(temporaryDirectory(t));
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  };
  const options = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  const server = createServer(options, (client) => {
    const behind = connect(vaultPort, '127.0.0.1');
    keep(client);
    keep(behind);
    client.pipe(behind).pipe(client);
    client.on('close', () => behind.destroy());
    behind.on('close', () => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
