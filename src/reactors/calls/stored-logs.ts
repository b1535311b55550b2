/** Limits how many log lines of code are stored: every line is sealed and kept for a day. */
import { type Clock, type Instant, minute } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import type { CodeLogLine } from '../sandbox/sandbox.ts';

/** Per tenant and thread. Lines over the limit are dropped, so that code cannot fill the disk. */
const loggedBytesPerMinuteMax = 1_048_576;

/** Returns the lines to store: all lines of a call, or none. */
export type AdmitLog = (tenant: TenantId, log: readonly CodeLogLine[]) => readonly CodeLogLine[];

export function createAdmitLog(clock: Clock, bytesMax = loggedBytesPerMinuteMax): AdmitLog {
  let begun: Instant | undefined;
  let bytes = new Map<TenantId, number>();
  return (tenant, log) => {
    const now = clock.now();
    if (begun === undefined || now - begun >= minute) {
      begun = now;
      bytes = new Map();
    }
    const size = log.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
    const total = (bytes.get(tenant) ?? 0) + size;
    if (total > bytesMax) return [];
    bytes.set(tenant, total);
    return log;
  };
}
