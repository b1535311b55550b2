/** Card codes: how long one is stored, and the data without it. */
import { type Instant, instantAfter } from '../../base/clock.ts';
import { isObject, type Json } from '../../base/json.ts';
import type { Quotas } from '../../rules/settings.ts';
import { type TokenType, type TokenTypeName, tokenTypes } from './token-types.ts';

/** What decides over a code among the contents of a token. */
interface CodeHolder {
  readonly type: TokenTypeName;
  readonly data: Json;
  readonly codeExpiresAt: Instant | undefined;
}

/** True when data of the type, or a patch of it, brings a code. */
export function hasCode(type: TokenTypeName, data: Json | undefined): boolean {
  const code = codeOf(type);
  return code !== undefined && isObject(data) && (data[code] ?? null) !== null;
}

/**
 * When the code among the contents goes; null without one. A code keeps the time it was given when it
 * was sent: neither another change of the token nor one of the quota moves it.
 */
export function codeExpiryOf(kept: CodeHolder, quotas: Quotas, now: Instant): Instant | null {
  if (!hasCode(kept.type, kept.data)) return null;
  return kept.codeExpiresAt ?? instantAfter(now, quotas.cvc_retention);
}

/** The data as it stays; everything but the code. */
export function withoutCode(type: TokenTypeName, data: Json): Json {
  const code = codeOf(type);
  if (code === undefined || !isObject(data) || !Object.hasOwn(data, code)) return data;
  const { [code]: _gone, ...rest } = data;
  return rest;
}

function codeOf(type: TokenTypeName): string | undefined {
  const row: TokenType = tokenTypes[type];
  return row.code;
}
