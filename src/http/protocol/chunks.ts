/** Requests whose bodies come in too small chunks. */
import { nodeHttp } from '../../base/node-http.ts';
import { ChunkCount } from '../../base/small-chunks.ts';

/**
 * A request whose connection is cut where its body comes in too small chunks. All bodies are counted here, also what
 * is discarded.
 */
export class RequestOfChunks extends nodeHttp.IncomingMessage {
  #count: ChunkCount | undefined;

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk === null) return super.push(chunk, encoding);
    this.#count ??= new ChunkCount();
    if (!this.#count.mayTake(chunk)) {
      this.socket.destroy();
      return false;
    }
    return super.push(chunk, encoding);
  }
}
