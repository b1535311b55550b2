/** A network between a vault and its PostgreSQL that a test makes slow, cuts, or lets swallow everything. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Lender } from './temporary.ts';

export interface DatabaseLink {
  /** The URL of the database, by way of the link. */
  readonly url: string;
  /** From now on so long in each direction. */
  delay(ms: number): void;
  /** Cuts all connections. New ones are accepted as before. */
  cut(): void;
  /** Connections stay, new ones are accepted, and nothing arrives any more on either side. */
  hold(): void;
  /** What is sent on new connections arrives again; those of before stay as they are for ever. */
  pass(): void;
}

export async function startDatabaseLink(t: Lender, databaseUrl: string): Promise<DatabaseLink> {
  const url = new URL(databaseUrl);
  const { hostname, port } = url;
  const sockets = new Set<Socket>();
  let delayMs = 0;
  let isHeld = false;

  const forward = (from: Socket, to: Socket, isDead: () => boolean) => {
    sockets.add(from);
    from.on('error', () => from.destroy());
    from.on('data', (chunk) => {
      const pass = () => void (isDead() || to.destroyed || to.write(chunk));
      if (delayMs === 0) pass();
      else setTimeout(pass, delayMs);
    });
    from.on('close', () => {
      sockets.delete(from);
      if (!isDead()) setTimeout(() => to.destroy(), delayMs);
    });
  };

  let held: { dead: boolean }[] = [];
  const server = createServer((near) => {
    const line = { dead: isHeld };
    held.push(line);
    const far = connect(Number(port), hostname);
    forward(near, far, () => line.dead);
    forward(far, near, () => line.dead);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  t.after(() => {
    server.close();
    cut();
  });
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    delay: (ms) => {
      delayMs = ms;
    },
    cut,
    hold: () => {
      isHeld = true;
      for (const line of held) line.dead = true;
      held = [];
    },
    pass: () => {
      isHeld = false;
    },
  };
}
