/** The other host of the demonstration, over TLS: it charges cards, and it is notified of events. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { newAuthority } from '../keys/temporary-authority.ts';

export interface DemoDestination {
  readonly url: string;
  /** Resolves with the first event that arrives, and the signature that it came with. */
  readonly notified: Promise<Notification>;
  /** The configuration for a vault that calls it: its address, and the certificate authority to trust. */
  readonly environment: Readonly<Record<string, string>>;
  close(): void;
}

export interface Notification {
  readonly event: {
    readonly type: string;
    readonly sequence: number;
    readonly data: { readonly token: { readonly id: string } };
  };
  readonly signature: string;
}

/** @param directory where the certificate of its authority is written. */
export async function startDemoDestination(directory: string): Promise<DemoDestination> {
  const authority = newAuthority();
  const caFile = join(directory, 'destination-ca.pem');
  writeFileSync(caFile, authority.cert);
  const arrived = Promise.withResolvers<Notification>();
  const server = createServer(authority.issue('localhost'), async (request, response) => {
    const body = JSON.parse(await text(request));
    if (request.url === '/events') {
      const signature = String(request.headers['webhook-signature']);
      arrived.resolve({ event: body.event, signature });
      response.end();
      return;
    }
    const { card, amount } = body;
    const number = String(card);
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({ approved: number.length === 16, ending: number.slice(-4), amount }),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const name = `localhost:${(server.address() as AddressInfo).port}`;
  return {
    url: `https://${name}`,
    notified: arrived.promise,
    environment: { STRONGROOM_OUTBOUND_ALLOW: name, STRONGROOM_OUTBOUND_CA: caFile },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
