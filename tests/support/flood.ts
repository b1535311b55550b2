/** A thread that sends many requests at once, so that the flood does not share the event loop of the vault. */
import { Agent, request } from 'node:http';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import type { Lender } from './temporary.ts';

export interface FloodedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

interface Order {
  readonly url: string;
  readonly count: number;
  readonly sent: readonly FloodedRequest[];
}

export interface Flood {
  /** Sends so many requests at once, each on a connection of its own. Resolves with the statuses. */
  send(sent: readonly FloodedRequest[], count: number): Promise<readonly number[]>;
}

/** From another address than tests have. */
const localAddress = '127.0.0.2';

export function startFlood(t: Lender, url: string): Flood {
  const worker = new Worker(new URL(import.meta.url));
  t.after(async () => void (await worker.terminate()));
  return {
    send: (sent, count) => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly number[]>();
      worker.once('error', reject);
      worker.once('message', (statuses) => {
        worker.off('error', reject);
        resolve(statuses);
      });
      worker.postMessage({ url, sent, count } satisfies Order);
      return promise;
    },
  };
}

if (!isMainThread) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1_000, maxFreeSockets: 1_000 });
  const one = (url: string, { method, path, headers, body }: FloodedRequest) =>
    new Promise<number>((resolve) => {
      const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
      request(url + path, { method, agent, localAddress, headers: { ...headers, ...length } })
        .on('response', (response) => {
          response.resume().on('close', () => resolve(response.statusCode ?? 0));
        })
        .on('error', () => resolve(0))
        .end(body);
    });
  parentPort?.on('message', async ({ url, sent, count }: Order) => {
    const all = Array.from({ length: count }, (_, at) =>
      one(url, sent[at % sent.length] as FloodedRequest),
    );
    parentPort?.postMessage(await Promise.all(all));
  });
}
