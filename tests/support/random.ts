/** Randomness that can be repeated: a test prints its seed, and TEST_SEED gives it again. */
import { randomInt } from 'node:crypto';
import type { TestContext } from 'node:test';

/** A seed by which the runner has an engine drawn for each file above the store, and fewer cases of each test. */
export const drawVariable = 'TEST_DRAW_ENGINES';

/** A whole number from 0 up to, not including, `bound`. */
export type Below = (bound: number) => number;

/** Numbers that follow from a printed seed. */
export function seeded(t: TestContext): Below {
  const seed = Number(process.env['TEST_SEED'] ?? randomInt(2 ** 31));
  t.diagnostic(`TEST_SEED=${seed}`);
  return numbersFrom(seed);
}

/**
 * So many random cases a test draws: all of them in `npm run test:all` and where its file is named, fewer in a run of
 * everything, which has other ones each time.
 */
export function casesOf({ all, drawn }: { readonly all: number; readonly drawn: number }): number {
  return process.env[drawVariable] === undefined ? all : drawn;
}

/** The numbers that follow from a seed (the generator is mulberry32). */
export function numbersFrom(seed: number): Below {
  let state = seed;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
}
