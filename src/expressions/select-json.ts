/** JSONPath (RFC 9535) for a command on the user's own machine: all of it, and without a limit of time. */
import { JSONPathEnvironment } from 'json-p3';
import type { Json } from '../base/json.ts';

/** @returns the selected values, or undefined if the text is no JSONPath. */
export function selectJson(path: string, value: Json): readonly unknown[] | undefined {
  try {
    return new JSONPathEnvironment().query(path, value as never).values();
  } catch {
    return undefined;
  }
}
