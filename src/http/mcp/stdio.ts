/** The Model Context Protocol over the pipes of a process. */
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { type ServedTools, serverOf } from './protocol.ts';

export interface ServedPipes {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly version: string;
}

/** Resolves when the input has ended. */
export async function serveOnPipes(
  served: ServedTools,
  { stdin, stdout, version }: ServedPipes,
): Promise<void> {
  const ended = once(stdin, 'close');
  const transport = new StdioServerTransport(stdin, stdout);
  const handle = serveStdio(serverOf(served, version), { transport });
  await ended;
  await handle.close();
}
