/** What ends a forwarded request early: its time limit, and a caller who has gone. */
import { OutboundError } from './error.ts';

/** An AbortSignal would do as well, and cost each request more than all the rest of this. */
export class TimeLimit {
  readonly #timer: NodeJS.Timeout;
  readonly #caller: AbortSignal | undefined;
  readonly #callerGone = () => this.#end(new OutboundError('aborted'));
  #controller: AbortController | undefined;
  #failure: OutboundError | undefined;

  /** Called when it ends the request. */
  giveUp: ((failure: OutboundError) => void) | undefined;

  constructor(timeoutMs: number, caller?: AbortSignal) {
    this.#timer = setTimeout(() => this.#end(new OutboundError('timeout')), timeoutMs);
    this.#caller = caller;
    caller?.addEventListener('abort', this.#callerGone);
    if (caller?.aborted) this.#callerGone();
  }

  #end(failure: OutboundError): void {
    this.#failure ??= failure;
    this.#controller?.abort(this.#failure);
    this.giveUp?.(this.#failure);
  }

  throwIfOver(): void {
    if (this.#failure) throw this.#failure;
  }

  /** For what has to wait. Its reason is an OutboundError. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#failure) this.#controller.abort(this.#failure);
    }
    return this.#controller.signal;
  }

  /** As long again. */
  restartTimer(): void {
    this.#timer.refresh();
  }

  /** From now on only the caller ends it. */
  stopTimer(): void {
    clearTimeout(this.#timer);
  }

  /** From now on nothing ends it. */
  lift(): void {
    this.stopTimer();
    this.#caller?.removeEventListener('abort', this.#callerGone);
  }
}
