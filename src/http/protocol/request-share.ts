/** What a request may use of its thread: the share of its sender. */
import type { Caller } from '../../rules/caller.ts';

export interface RequestShare {
  /** Charges processor time to the share. */
  charge(ms: number): void;
  /** @throws VaultError `too_many_requests` where its caller holds too much already. */
  hold(bytes: number): void;
  /** Of a response, which is not refused any more: what follows it waits. */
  holdResponse(bytes: number): void;
  /**
   * Resolves when it is its turn again. `undefined` where that is now. Rejects with `too_many_requests`, and with
   * `malformed_request` once its client has left.
   */
  turn(): Promise<void> | undefined;
  /** The same for a part of a stream that has begun, which waits for as long as its client does. */
  turnOfPart(): Promise<void>;
  /**
   * Resolves when work that has begun may continue, which it does even after its client has left. `undefined` where
   * that is now.
   */
  nextStep(): Promise<void> | undefined;
  /** Whether no other caller was active recently. */
  readonly isAlone: boolean;
  /** How many rows the next part of a stream may have, from 1 to `rowsMax`: as many as one turn has time for. */
  rowsOfPart(rowsMax: number): number;
  /** Once its key is known to be valid, or not. */
  settle(caller: Caller | undefined): void;
  /** Its client has its response or has left: it gets no turn any more. */
  leave(): void;
  /** The handler has ended. What it holds is released after both, or leaving would make room for more work. */
  done(): void;
}
