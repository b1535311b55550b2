/** Ends a forwarded request early: at its time limit, or when its caller has disconnected. */
import { OutboundError } from './error.ts';

/** An AbortSignal would do as well, but would cost each request more than the rest of this file. */
export class TimeLimit {
  readonly #timer: NodeJS.Timeout;
  readonly #caller: AbortSignal | undefined;
  readonly #callerGone = () => this.#end(new OutboundError('aborted'));
  #controller: AbortController | undefined;
  #failure: OutboundError | undefined;

  /** Called when the limit ends the request. */
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

  /** For waits. Its reason is an OutboundError. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#failure) this.#controller.abort(this.#failure);
    }
    return this.#controller.signal;
  }

  /** Starts the same time limit again. */
  restartTimer(): void {
    this.#timer.refresh();
  }

  /** After this call only the caller ends the request. */
  stopTimer(): void {
    clearTimeout(this.#timer);
  }

  /** After this call nothing ends the request. */
  lift(): void {
    this.stopTimer();
    this.#caller?.removeEventListener('abort', this.#callerGone);
  }
}
