/** Adding to a response: a member of its JSON, text at its end, or a header. */
import { ExpressionError } from '../expressions/evaluation/error.ts';
import type { Step } from '../expressions/filters/json-path.ts';
import { setMember } from '../expressions/template.ts';
import { isObject, type Json } from '../lib/json.ts';

/**
 * The JSON with the value at a location. Members that are missing on the way are created, and so is the
 * item after the last of a list. Nothing of what is given is altered.
 *
 * @throws ExpressionError when the JSON has something else on the way.
 */
export function appendJson(
  json: Json | undefined,
  [step, ...steps]: readonly Step[],
  value: Json,
): Json {
  if (step === undefined) return value;
  const parent = json ?? (json === undefined ? emptyFor(step) : null);
  if (typeof step === 'string' && isObject(parent)) {
    const members: Record<string, Json> = { ...parent };
    const member = Object.hasOwn(parent, step) ? parent[step] : undefined;
    setMember(members, step, appendJson(member, steps, value));
    return members;
  }
  if (typeof step === 'number' && Array.isArray(parent)) {
    const index = step < 0 ? parent.length + step : step;
    if (index >= 0 && index <= parent.length) {
      const items: Json[] = [...(parent as readonly Json[])];
      items[index] = appendJson(items[index], steps, value);
      return items;
    }
  }
  throw new ExpressionError('the location of append_json does not fit the JSON of the response');
}

function emptyFor(step: Step): Json {
  return typeof step === 'number' ? [] : {};
}

const namePattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;

/** What says how a message is framed, or is for one connection, is not a transform's to set. */
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

/** True for what a transform may name as a header of a response. */
export function isHeaderName(name: string): boolean {
  return namePattern.test(name) && !framing.has(name.toLowerCase());
}
