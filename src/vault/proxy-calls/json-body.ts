/** A body as transforms see it: its members where it is JSON, else its text. */
import { ExpressionError } from '../../expressions/evaluation/error.ts';
import type { Json } from '../../lib/json.ts';
import { createPause } from '../../lib/pauses.ts';
import { hasMoreValues } from '../../transforms/json-positions.ts';

/** Nobody else is served while JSON is parsed: by measurement so many members of an object take 30 ms. */
export const jsonValuesMax = 50_000;

/** What is shorter has no more than {@link jsonValuesMax} values: there is a comma between two of them. */
const shortLengthMax = 2 * jsonValuesMax;

/** @throws what `tooMany` gives for JSON with more than {@link jsonValuesMax} values. */
export async function jsonOrText(text: string, tooMany: (reason: string) => Error): Promise<Json> {
  if (text.length > shortLengthMax) {
    try {
      if (await hasMoreValues(text, jsonValuesMax, createPause())) {
        throw tooMany(`has more than ${jsonValuesMax} values that transforms would read`);
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
