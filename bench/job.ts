/** What a load generator is asked to do, and what it tells of it. */

export interface Job {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly seconds: number;
  readonly connections: number;
  /**
   * These are read in turn, or cards are posted to `/tokens`, counting up from `serial`, or these bodies
   * are posted in turn.
   */
  readonly work:
    | { readonly paths: readonly string[] }
    | { readonly serial: number; readonly idempotent?: boolean }
    | { readonly path: string; readonly bodies: readonly string[] };
}

export interface LoadResult {
  readonly generator: 'autocannon' | 'wrk';
  readonly succeeded: number;
  readonly failed: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Cores the generator itself kept busy. Near 1, it and not the server was the limit. */
  readonly cores: number;
}
