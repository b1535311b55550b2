/** Bytes that are passed on for a caller, who pays for them: each part waits for its turn. */
import { Transform } from 'node:stream';
import type { RequestShare } from './request-share.ts';

/** As many take a millisecond of a thread, to be received, and to be sent again. */
const bytesOfMs = 262_144;
/** What a chunk costs besides, in milliseconds. */
const chunkMs = 0.02;
/** Small chunks are paid for together. */
const partMsMin = 0.2;

/** Fails with the refusal of the share, once the caller has left. */
export function paced(share: Pick<RequestShare, 'charge' | 'turnOfPart'>): Transform {
  let owedMs = 0;
  return new Transform({
    transform: (chunk: Buffer, _, done) => {
      owedMs += chunkMs + chunk.length / bytesOfMs;
      if (owedMs < partMsMin) {
        done(null, chunk);
        return;
      }
      share.charge(owedMs);
      owedMs = 0;
      share.turnOfPart().then(() => done(null, chunk), done);
    },
  });
}
