/** A payment provider of the demonstration: over TLS, and it says only how a card number ends. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { newAuthority } from '../crypto/temporary-authority.ts';

export interface DemoDestination {
  readonly url: string;
  /** What a vault that is to call it needs: where it is, and whom to trust for that. */
  readonly environment: Readonly<Record<string, string>>;
  close(): void;
}

/** @param directory where the certificate of its authority is written. */
export async function startDemoDestination(directory: string): Promise<DemoDestination> {
  const authority = newAuthority();
  const caFile = join(directory, 'destination-ca.pem');
  writeFileSync(caFile, authority.cert);
  const server = createServer(authority.issue('localhost'), async (request, response) => {
    const { card, amount } = JSON.parse(await text(request));
    const ending = String(card).slice(-4);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ approved: card.length === 16, ending, amount }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const name = `localhost:${(server.address() as AddressInfo).port}`;
  return {
    url: `https://${name}`,
    environment: { STRONGROOM_OUTBOUND_ALLOW: name, STRONGROOM_OUTBOUND_CA: caFile },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
