/** A JavaScript engine as the child process uses it: two functions, between which only texts pass. */

/**
 * Asked by code inside the engine, with `undefined` for a text that is longer than the host takes. It never throws: the
 * engine would show the error to the code.
 */
export type HostFunction = (operation: string, text: string | undefined) => string;

/** An engine with the prelude evaluated, before any code of a tenant. */
export interface EngineImage {
  /** An engine whose memory nobody has used before. */
  start(host: HostFunction): Promise<Engine>;
}

export interface Engine {
  /**
   * Calls the function that the prelude evaluates to, then the jobs of all promises that can go on.
   *
   * @throws EngineError when the engine cannot go on.
   */
  enter(kind: string, text: string): void;
  /** What the engine holds of the machine's memory. */
  memoryBytes(): number;
  end(): void;
}

export interface EngineOptions {
  /** A script that gets the host as the global `host`, and evaluates to `function (kind, text)`. */
  readonly prelude: string;
  readonly memoryBytesMax: number;
  readonly stackBytesMax: number;
  /** Of what the host is handed; a longer text is not copied out of the engine's memory. */
  readonly textLengthMax: number;
  /** Asked now and then while code runs; the engine stops on `true`. Some loops never ask. */
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
