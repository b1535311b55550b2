/** The body of a forwarded response, which ends only when it is complete. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { ChunkCount } from '../base/small-chunks.ts';
import { failureOf, OutboundError } from './error.ts';

/** Hosts may write a response while they send it, word by word. Each word costs some microseconds. */
const wordsPerSecond = 200;

/** Counts the chunks of a response. */
export function countOfResponse(): ChunkCount {
  return new ChunkCount(wordsPerSecond);
}

/** Fails with an OutboundError for every failure of the network layer. */
export class ResponseBody extends Readable {
  readonly #source: IncomingMessage;

  /** @param failure the reason why the body will never be complete, if it is known already. */
  constructor(source: IncomingMessage, failure?: OutboundError) {
    super();
    this.#source = source;
    // The body may fail before its reader has added a listener. The reader then finds it failed.
    this.on('error', () => undefined);
    const count = countOfResponse();
    source.on('data', (chunk: Buffer) => {
      if (!count.mayTake(chunk)) this.destroy(new OutboundError('invalid_response'));
      else if (!this.push(chunk)) source.pause();
    });
    source.on('end', () => this.push(null));
    source.on('error', (error) => this.destroy(failureOf(error)));
    source.on('close', () => {
      if (!source.readableEnded) this.destroy(new OutboundError('reset'));
    });
    if (failure) this.destroy(failure);
    else if (source.closed) this.destroy(new OutboundError('reset'));
  }

  override _read(): void {
    this.#source.resume();
  }

  /** If the reader leaves before the end, the connection is closed. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#source.destroy();
    done(error);
  }
}
