/** A collector that takes batches of newline-delimited JSON by POST. */
import { readFile } from 'node:fs/promises';
import { second } from '../../base/clock.ts';
import type { Outbound } from '../../outbound/call.ts';
import { BatchRefused, type Receiver } from './push.ts';

const timeoutMs = 30 * second;
const responseBytesMax = 65_536;
/** Refusals of the request, which another one from here would get as well: no entry causes them. */
const ofAll: ReadonlySet<number> = new Set([401, 404, 407, 408, 425, 429]);

export interface HttpsReceiverOptions {
  readonly url: string;
  readonly outbound: Outbound;
  /** Holds the value of the header `Authorization`. It is read for each batch, so that it can be replaced. */
  readonly authorizationFile: string | undefined;
}

/** A batch is confirmed by any status of 2xx. */
export function httpsReceiver({
  url,
  outbound,
  authorizationFile,
}: HttpsReceiverOptions): Receiver {
  return {
    deliver: async (entries, signal) => {
      const secret = authorizationFile && (await readFile(authorizationFile, 'utf8')).trim();
      const { status } = await outbound({
        method: 'POST',
        url: new URL(url),
        headers: {
          'content-type': 'application/x-ndjson',
          ...(secret && { authorization: secret }),
        },
        body: entries.map(({ line }) => line).join(''),
        timeoutMs,
        signal,
        responseBytesMax,
        redirectsMax: 0,
      });
      if (status >= 200 && status <= 299) return;
      const message = `the collector responded with ${status}`;
      const isOfEntries = status >= 400 && status <= 499 && !ofAll.has(status);
      throw isOfEntries ? new BatchRefused(message) : new Error(message);
    },
  };
}
