/** What ends a forwarded request early: its time limit, and a caller who has gone. */
import { OutboundError } from './error.ts';

export class TimeLimit {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #caller: AbortSignal | undefined;
  readonly #callerGone = () => this.#controller.abort(new OutboundError('aborted'));

  constructor(timeoutMs: number, caller?: AbortSignal) {
    const timeUp = () => this.#controller.abort(new OutboundError('timeout'));
    this.#timer = setTimeout(timeUp, timeoutMs);
    this.#caller = caller;
    caller?.addEventListener('abort', this.#callerGone);
    if (caller?.aborted) this.#callerGone();
  }

  /** Its reason is an OutboundError. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** From now on only the caller ends it. */
  stopTimer(): void {
    clearTimeout(this.#timer);
  }

  end(): void {
    this.stopTimer();
    this.#caller?.removeEventListener('abort', this.#callerGone);
  }
}
