/** A flaw that verification found in a log, in words for the operator. */
import type { TenantId } from '../base/ids.ts';
import type { BreakKind } from '../store/log-chain/breaks.ts';

export interface LogFinding {
  /** `truncated`: the newest are gone. `forged`: not signed by a key that counts. */
  readonly kind: BreakKind | 'truncated' | 'forged' | 'unreadable';
  /** Undefined where it is about a line of a file. */
  readonly tenant_id?: TenantId;
  /** Undefined where it is about a checkpoint or a line. */
  readonly stream_id?: string;
  /** The first bad or missing entry of the stream, else the checkpoint or the line. */
  readonly seq: number;
  readonly message: string;
}

/** `entry 7` or `entries 7 to 9`. */
export function rangeOf(noun: [one: string, many: string], first: number, last: number): string {
  return first === last ? `${noun[0]} ${first}` : `${noun[1]} ${first} to ${last}`;
}
