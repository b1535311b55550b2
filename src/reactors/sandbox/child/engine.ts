/** A JavaScript engine as the child process uses it: two functions, which exchange only strings. */

/**
 * Called by code inside the engine, with `undefined` for a string that is longer than the host accepts. It never
 * throws, because the engine would show the error to the code.
 */
export type HostFunction = (operation: string, text: string | undefined) => string;

/** An engine with the prelude evaluated, before any code of a tenant. */
export interface EngineImage {
  /** Returns an engine with fresh memory. */
  start(host: HostFunction): Promise<Engine>;
}

export interface Engine {
  /**
   * Calls the function that the prelude evaluates to, then runs the jobs of all promises that can proceed.
   *
   * @throws EngineError if the engine cannot continue.
   */
  enter(kind: string, text: string): void;
  /** The machine memory that the engine uses. */
  memoryBytes(): number;
  end(): void;
}

export interface EngineOptions {
  /** A script that gets the host as the global `host`, and evaluates to `function (kind, text)`. */
  readonly prelude: string;
  readonly memoryBytesMax: number;
  readonly stackBytesMax: number;
  /** Limits what the host receives; a longer string is not copied out of the engine's memory. */
  readonly textLengthMax: number;
  /** Polled while code runs; the engine stops on `true`. Some loops never poll it. */
  readonly mustStop: () => boolean;
}

export type OpenEngine = (options: EngineOptions) => Promise<EngineImage>;

export class EngineError extends Error {
  readonly reason: 'memory' | 'crashed';

  constructor(reason: 'memory' | 'crashed') {
    super(`the engine ended: ${reason}`);
    this.reason = reason;
  }
}
