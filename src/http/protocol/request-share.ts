/** What a request may use of its thread: the share of whoever sent it. */
import type { Caller } from '../../rules/caller.ts';

export interface RequestShare {
  /** What it costs. */
  charge(ms: number): void;
  /** @throws VaultError `too_many_requests` where its caller holds too much already. */
  hold(bytes: number): void;
  /** Of a response, which is not refused any more: what follows it waits. */
  holdResponse(bytes: number): void;
  /** Resolves when it is its turn again. `undefined` where that is now. Rejects with `too_many_requests`. */
  turn(): Promise<void> | undefined;
  /** Once its key is known to be valid, or not. */
  settle(caller: Caller | undefined): void;
  /** Gives back all that it holds. */
  end(): void;
}
