/** Chunks of a body: each costs some hundred bytes of memory and some microseconds, however small it is. */
import { nodeHttp } from '../../base/node-http.ts';

/** As many as a body may come in, whatever their size. */
export const smallChunksMax = 4_096;

/** What those of a longer body have on average: a short line of an import, and less than any packet. */
const chunkBytesMin = 24;

/**
 * A request whose connection is cut where its body comes in too small chunks. All bodies are counted here, also what
 * is discarded: a megabyte in chunks of one byte would hold hundreds of megabytes, and keep a thread busy for seconds.
 */
export class RequestOfChunks extends nodeHttp.IncomingMessage {
  #chunks = 0;
  #bytes = 0;

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk !== null && !this.#mayTake(chunk)) {
      this.socket.destroy();
      return false;
    }
    return super.push(chunk, encoding);
  }

  #mayTake({ length }: Buffer): boolean {
    this.#chunks += 1;
    this.#bytes += length;
    return this.#chunks <= smallChunksMax || this.#bytes >= this.#chunks * chunkBytesMin;
  }
}
