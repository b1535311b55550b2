/** Cursors: a position in a list. The client can read a cursor, but only the vault can create one, for one route. */
import assert from 'node:assert/strict';
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Json } from '../base/json.ts';
import { encodeParts } from './parts.ts';

/** A token id of 400 characters takes up to 1200 bytes, a time and a page number the rest. */
export const cursorLengthMax = 1700;

const tagBytes = 16;

/** Base64url of a tag (16 bytes of HMAC-SHA-256 over route and payload) and the payload's JSON. */
export function sealCursor(key: KeyObject, route: string, payload: Json): string {
  const json = JSON.stringify(payload);
  const cursor = Buffer.concat([tagOf(key, route, json), Buffer.from(json)]).toString('base64url');
  assert(cursor.length <= cursorLengthMax, `a cursor has at most ${cursorLengthMax} characters`);
  return cursor;
}

/** The payload; `undefined` when this key made no such cursor for this route. */
export function openCursor(key: KeyObject, route: string, cursor: string): Json | undefined {
  if (cursor.length > cursorLengthMax) return undefined;
  const bytes = Buffer.from(cursor, 'base64url');
  // Node skips what is not base64url; a cursor has exactly one spelling.
  if (bytes.length <= tagBytes || bytes.toString('base64url') !== cursor) return undefined;
  const json = bytes.toString('utf8', tagBytes);
  if (!timingSafeEqual(bytes.subarray(0, tagBytes), tagOf(key, route, json))) return undefined;
  return JSON.parse(json) as Json;
}

function tagOf(key: KeyObject, route: string, json: string): Buffer {
  const mac = createHmac('sha256', key).update(encodeParts([route, json]));
  return mac.digest().subarray(0, tagBytes);
}
