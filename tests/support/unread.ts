/** Answers that are not read before the test says so, over TLS as well. */
import type { IncomingMessage } from 'node:http';
import { get as getPlainly } from 'node:http';
import { get as getSecurely } from 'node:https';
import { nextLook } from './poll.ts';
import type { TestVault } from './vault.ts';

export interface Unread {
  readonly response: IncomingMessage;
  /** Reads to the end of the answer, or to where the connection was cut. */
  read(): Promise<ReadAnswer>;
}

export interface ReadAnswer {
  readonly text: string;
  /** False where the connection was cut. */
  readonly complete: boolean;
}

export interface UnreadRequest {
  readonly url: string;
  readonly key: string;
  /** Of a server whose certificate nobody else has signed. */
  readonly ca?: string;
}

/** Resolves when the answer has begun; what the client itself buffers of it is a few KiB. */
export async function askUnread({ url, key, ca }: UnreadRequest): Promise<Unread> {
  const options = { headers: { 'svc-api-key': key }, agent: false } as const;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const request =
      ca === undefined ? getPlainly(url, options) : getSecurely(url, { ...options, ca });
    request.once('response', resolve).once('error', reject);
  });
  const closed = new Promise((resolve) => response.once('close', resolve));
  // It may be cut before anybody reads it.
  response.on('error', () => undefined);
  return {
    response,
    read: async () => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      await closed;
      return { text: Buffer.concat(chunks).toString('utf8'), complete: response.complete };
    },
  };
}

/** Resolves when the vault has cut a connection. */
export async function untilCut({ logged }: Pick<TestVault, 'logged'>): Promise<void> {
  while (!logged.some(({ message }) => message === 'connection cut')) {
    await nextLook();
  }
}
