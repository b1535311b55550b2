/** Somebody else's host: a real HTTP server on loopback that answers as the test wants. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Lender } from './temporary.ts';

export interface HostRequest {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type Answer = (response: ServerResponse, request: HostRequest) => void;

export interface Host {
  readonly url: string;
  /** `127.0.0.1:port`, as it stands in an allow-list. */
  readonly name: string;
  readonly port: number;
  /** Everything it was sent. */
  readonly requests: HostRequest[];
  /** How it answers from now on; at first with an empty 200. */
  answer(answer: Answer): void;
}

/** Starts a host that is gone after the test, with every connection that is still open. */
export async function startHost(t: Lender): Promise<Host> {
  const requests: HostRequest[] = [];
  let answer: Answer = (response) => response.end();
  const server = createServer(async (request, response) => {
    const { method, url: path, headers } = request;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const received = { method, path, headers, body: Buffer.concat(chunks).toString('utf8') };
    requests.push(received);
    answer(response, received);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  const { port } = server.address() as AddressInfo;
  const name = `127.0.0.1:${port}`;
  return {
    url: `http://${name}`,
    name,
    port,
    requests,
    answer: (next) => {
      answer = next;
    },
  };
}

export function json(value: unknown, status = 200): Answer {
  return (response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

export function redirect(location: string, status = 302): Answer {
  return (response) => response.writeHead(status, { location }).end();
}
