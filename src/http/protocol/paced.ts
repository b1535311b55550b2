/** Bytes that are passed on for a caller, who pays for them: each part waits for its turn. */
import { Transform } from 'node:stream';
import type { RequestShare } from './request-share.ts';

/** As many take a millisecond of a thread, to be received, and to be sent again. */
const bytesOfMs = 262_144;
/** What a chunk costs besides, in milliseconds. */
const chunkMs = 0.02;
/** Small chunks are paid for together. */
const partMsMin = 0.2;

type PayingShare = Pick<RequestShare, 'charge' | 'turnOfPart'>;

/** Fails with the refusal of the share, once the caller has left. */
export function paced(share: PayingShare): Transform {
  const turnFor = createTurns(share);
  return new Transform({
    transform: (chunk: Buffer, _, done) => {
      const turn = turnFor(chunk);
      if (turn) turn.then(() => done(null, chunk), done);
      else done(null, chunk);
    },
  });
}

/** The same for what is read part by part. */
export async function* pacedParts(
  parts: AsyncIterable<Buffer>,
  share: PayingShare,
): AsyncGenerator<Buffer> {
  const turnFor = createTurns(share);
  for await (const part of parts) {
    const turn = turnFor(part);
    if (turn) await turn;
    yield part;
  }
}

/** What the next chunk has to wait for; `undefined` where it is paid for with those that follow. */
function createTurns(share: PayingShare): (chunk: Buffer) => Promise<void> | undefined {
  let owedMs = 0;
  return (chunk) => {
    owedMs += chunkMs + chunk.length / bytesOfMs;
    if (owedMs < partMsMin) return undefined;
    share.charge(owedMs);
    owedMs = 0;
    return share.turnOfPart();
  };
}
