/** Lines of a file as requests to create tokens; those of an export become what they were made from. */
import { isDeepStrictEqual } from 'node:util';
import { isObject, type Json, type JsonObject } from '../../base/json.ts';
import { parseTokenType, tokenTypes } from '../../tokens/contents/token-types.ts';

/** The attributes of a token that a request to create it again may contain. */
const requested = [
  'id',
  'type',
  'data',
  'mask',
  'containers',
  'metadata',
  'search_indexes',
  'fingerprint_expression',
  'expires_at',
];

/** The line to send; `undefined` for one that asks for nothing: blank, or the last of an export. */
export function requestLine(line: string): string | undefined {
  const text = line.trim();
  if (text === '' || /^\{"exported":\d+\}$/.test(text)) return undefined;
  // Parsed only where it looks like an export: a token says whose it is, a request does not.
  if (!text.includes('"tenant_id"')) return text;
  try {
    const token = JSON.parse(text) as Json;
    return isObject(token) && 'tenant_id' in token ? JSON.stringify(requestOf(token)) : text;
  } catch {
    return text;
  }
}

/** Defaults of the type are left out, so that the new token follows its type as the old one did. */
function requestOf(token: JsonObject): JsonObject {
  const type = parseTokenType(String(token['type']));
  const row = type && tokenTypes[type];
  const isOfType = (name: string, value: Json | undefined) =>
    (name === 'mask' && isDeepStrictEqual(value, row?.mask)) ||
    (name === 'fingerprint_expression' && value === row?.fingerprint);
  const entries = requested
    .filter((name) => Object.hasOwn(token, name) && !isOfType(name, token[name]))
    .map((name) => [name, token[name] as Json] as const);
  return Object.fromEntries(entries);
}
