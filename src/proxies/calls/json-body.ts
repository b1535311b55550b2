/** A body for transforms: the parsed value if it is JSON, otherwise the string. */

import type { Json } from '../../base/json.ts';
import { createPause } from '../../base/pauses.ts';
import { ExpressionError } from '../../expressions/evaluation/error.ts';
import { hasMoreValues } from '../transforms/json-positions.ts';

/** Parsing JSON blocks the event loop. An object with this many members takes 30 ms, as measured. */
export const jsonValuesMax = 50_000;

/** The limit for callers without a key, or with one that browsers can read. */
export const publicJsonValuesMax = 10_000;

export interface JsonReading {
  readonly valuesMax: number;
  /** Creates the caller's error for a body with more values. */
  readonly tooMany: (reason: string) => Error;
}

/** @throws the error from `tooMany`. */
export async function jsonOrText(text: string, { valuesMax, tooMany }: JsonReading): Promise<Json> {
  // A shorter string cannot exceed the limit, because a comma separates two values.
  if (text.length > 2 * valuesMax) {
    try {
      if (await hasMoreValues(text, valuesMax, createPause())) {
        throw tooMany(`has more than ${valuesMax} values that transforms would read`);
      }
    } catch (error) {
      if (error instanceof ExpressionError) return text;
      throw error;
    }
  }
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
