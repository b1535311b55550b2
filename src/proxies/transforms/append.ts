/** Appends to a response: a member of its JSON, text at its end, or a header. */

import type { Json } from '../../base/json.ts';
import { createPause, type Pause } from '../../base/pauses.ts';
import { ExpressionError } from '../../expressions/evaluation/error.ts';
import type { Step } from '../../expressions/filters/json-path.ts';
import { afterBlank, endsOfJson, stepsOfPart } from './json-positions.ts';

/**
 * Sets the value at a location of a JSON string, and otherwise preserves every byte. Parsing and serializing would
 * lose digits of large numbers, the formatting, and all but the last of members with the same name. An empty string
 * becomes a new JSON value. Missing members on the path are created, and so is the item after the last of a list. A
 * large string is processed in parts, between which the event loop serves others.
 *
 * @throws ExpressionError if the string is not JSON, or has an incompatible value on the path.
 */
export async function appendJson(
  text: string,
  location: readonly Step[],
  value: Json,
): Promise<string> {
  if (text === '') return written(location, value);
  const pause = createPause();
  const json = { text, ends: await endsOfJson(text, pause), pause };
  let begin = afterBlank(text, 0);
  for (const [index, step] of location.entries()) {
    const place =
      typeof step === 'string'
        ? await memberOf(json, begin, step)
        : await itemOf(json, begin, step);
    if (place.valueBegin === undefined) {
      const name = typeof step === 'string' ? `${JSON.stringify(step)}:` : '';
      const added = name + written(location.slice(index + 1), value);
      const comma = place.isFirst ? '' : ',';
      return text.slice(0, place.freeAt) + comma + added + text.slice(place.freeAt);
    }
    begin = place.valueBegin;
  }
  return text.slice(0, begin) + JSON.stringify(value) + text.slice(json.ends[begin]);
}

interface JsonPositions {
  readonly text: string;
  /** Maps the start index of each value or name to its end. */
  readonly ends: Uint32Array;
  readonly pause: Pause;
}

/** The position of a value, or the position where it can be inserted. */
type ValuePosition =
  | { readonly valueBegin: number }
  | { readonly valueBegin: undefined; readonly freeAt: number; readonly isFirst: boolean };

async function memberOf(
  { text, ends, pause }: JsonPositions,
  begin: number,
  name: string,
): Promise<ValuePosition> {
  if (text[begin] !== '{') throw unfit();
  let valueBegin: number | undefined;
  let freeAt = begin + 1;
  let steps = 0;
  for (let at = afterBlank(text, freeAt); text[at] !== '}'; at = afterBlank(text, freeAt)) {
    steps += 1;
    if (steps % stepsOfPart === 0) await pause();
    if (text[at] === ',') at = afterBlank(text, at + 1);
    const nameEnd = ends[at] ?? 0;
    const from = afterBlank(text, afterBlank(text, nameEnd) + 1);
    if (isName(text.slice(at, nameEnd), name)) valueBegin = from;
    freeAt = ends[from] ?? 0;
  }
  return valueBegin === undefined
    ? { valueBegin, freeAt, isFirst: freeAt === begin + 1 }
    : { valueBegin };
}

function isName(spelled: string, name: string): boolean {
  if (spelled.includes('\\')) return JSON.parse(spelled) === name;
  return spelled.length === name.length + 2 && spelled.slice(1, -1) === name;
}

/** Negative indexes count from the end, RFC 9535. */
async function itemOf(json: JsonPositions, begin: number, index: number): Promise<ValuePosition> {
  if (json.text[begin] !== '[') throw unfit();
  const found = await itemAt(json, begin, index);
  if (found.valueBegin !== undefined) return found;
  const wanted = index < 0 ? found.count + index : index;
  if (wanted < 0 || wanted > found.count) throw unfit();
  return wanted < found.count ? itemAt(json, begin, wanted) : found;
}

async function itemAt({ text, ends, pause }: JsonPositions, begin: number, index: number) {
  let count = 0;
  let freeAt = begin + 1;
  for (let at = afterBlank(text, freeAt); text[at] !== ']'; at = afterBlank(text, freeAt)) {
    if (text[at] === ',') at = afterBlank(text, at + 1);
    if (count === index) return { valueBegin: at } as const;
    freeAt = ends[at] ?? 0;
    count += 1;
    if (count % stepsOfPart === 0) await pause();
  }
  return { valueBegin: undefined, freeAt, isFirst: count === 0, count } as const;
}

/** The JSON to create for the remaining steps of the path. */
function written([step, ...steps]: readonly Step[], value: Json): string {
  if (step === undefined) return JSON.stringify(value);
  if (typeof step === 'string') return `{${JSON.stringify(step)}:${written(steps, value)}}`;
  if (step === 0) return `[${written(steps, value)}]`;
  throw unfit();
}

function unfit(): ExpressionError {
  return new ExpressionError('the location of append_json does not fit the JSON of the response');
}

const namePattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;

/** Headers for the framing of a message or for one connection, which a transform may not set. */
const framing = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** True if a transform may set this response header. */
export function isHeaderName(name: string): boolean {
  return namePattern.test(name) && !framing.has(name.toLowerCase());
}
