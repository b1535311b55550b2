/** The body of a forwarded answer, which ends only when it is whole. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { failureOf, OutboundError } from './error.ts';

/** Fails with an OutboundError, whatever happens below. */
export class ResponseBody extends Readable {
  readonly #source: IncomingMessage;

  /** @param failure why it will never be whole, where that is known already. */
  constructor(source: IncomingMessage, failure?: OutboundError) {
    super();
    this.#source = source;
    // It may fail before its reader has had a turn to listen; the reader then finds it failed.
    this.on('error', () => undefined);
    source.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) source.pause();
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

  /** Left before its end, the connection is closed. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#source.destroy();
    done(error);
  }
}
