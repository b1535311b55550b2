/** A body as transforms see it: its members where it is JSON, else its text. */

import type { Json } from '../../base/json.ts';
import { createPause } from '../../base/pauses.ts';
import { ExpressionError } from '../../expressions/evaluation/error.ts';
import { hasMoreValues } from '../transforms/json-positions.ts';

/** Nobody else is served while JSON is parsed: by measurement so many members of an object take 30 ms. */
export const jsonValuesMax = 50_000;

/** The same for what callers send who have no key, or one that lies in browsers. */
export const publicJsonValuesMax = 10_000;

export interface JsonReading {
  readonly valuesMax: number;
  /** What the caller gets for more values than that. */
  readonly tooMany: (reason: string) => Error;
}

/** @throws what `tooMany` gives. */
export async function jsonOrText(text: string, { valuesMax, tooMany }: JsonReading): Promise<Json> {
  // What is shorter has no more: there is a comma between two of them.
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
