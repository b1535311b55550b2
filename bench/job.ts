/** What a load generator is asked to do, and what it measured. */

export interface Job {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly method: Method;
  /** Sent one after the other. Wherever they hold {@link cardPlace}, the number of the next card is put. */
  readonly requests: readonly RequestOf[];
  /** Of the first such card; see cards.ts. */
  readonly serial: number;
  readonly connections: number;
  readonly seconds: number;
}

export type Method = 'GET' | 'POST' | 'PATCH';

export interface RequestOf {
  readonly path: string;
  readonly body?: string;
  readonly idempotencyKey?: string;
}

/** As long as a card number, so that the length of a request is known before its number is. */
export const cardPlace = '#'.repeat(16);

export function holdsPlace(request: RequestOf): boolean {
  return JSON.stringify(request).includes(cardPlace);
}

export interface LoadResult {
  readonly succeeded: number;
  readonly failed: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Cores the generator itself kept busy. Near 1, it and not the server was the limit. */
  readonly cores: number;
}
