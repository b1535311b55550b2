/** The part of autocannon that the benchmark uses; the package has no types of its own. */
declare module 'autocannon' {
  interface Request {
    readonly setupRequest: (request: Readonly<Record<string, unknown>>) => object;
  }

  interface Options {
    readonly url: string;
    readonly connections: number;
    readonly duration: number;
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly requests: readonly Request[];
  }

  interface Result {
    readonly '2xx': number;
    readonly non2xx: number;
    readonly errors: number;
    /** Seconds. */
    readonly duration: number;
    /** Milliseconds, rounded down. */
    readonly latency: { readonly p50: number; readonly p99: number };
  }

  function autocannon(options: Options): Promise<Result>;
  // biome-ignore lint/style/noDefaultExport: that is how the package exports it.
  export default autocannon;
}
