/** Things a test borrows from the machine: a directory and a port. */
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The one thing asked of a test context: to run something when the test is over. */
export interface Lender {
  after(give: () => void | Promise<void>): void;
}

/** An empty directory that is removed, with all that is in it, after the test. */
export function temporaryDirectory(t: Lender): string {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-test-'));
  t.after(() => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }));
  return directory;
}

/**
 * Linux hands out 32768 to 60999 as the near end of outgoing connections. A port below that range
 * cannot be taken by one of them between the moment it is found free and the moment it is used.
 */
const portMin = 20_000;
const portMax = 32_000;

const portAttemptsMax = 100;

/** A port of 127.0.0.1 that nobody listens on, and that no other test is given before this process ends. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < portAttemptsMax; attempt += 1) {
    const port = randomInt(portMin, portMax);
    if ((await claim(port)) && (await canListen(port))) return port;
  }
  throw new Error(`no free port found in ${portAttemptsMax} attempts`);
}

/** By an abstract name of Linux, which one process at a time can have, and which goes with it. */
function claim(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().unref();
    server.once('error', () => resolve(false));
    server.listen(`\0strongroom-test-port-${port}`, () => resolve(true));
  });
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => {
      server.close(() => resolve(true));
    });
  });
}
