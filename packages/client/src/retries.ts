/** When a failed request is sent again: what can succeed then, and after which time. */
import { ApiError, ConnectionError, type StrongroomError } from './errors.ts';

const firstMs = 500;
const longestMs = 8_000;
/** Nobody waits longer than this for a request: the error says when to try again. */
const retryAfterMax = 60;

/** Statuses that pass by themselves. A conflict does where the vault says after which time. */
const passing: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Problems that another attempt meets again. */
const lasting = /^(?:integrity|reactor_\w+)$/;

/** How long to wait before the next attempt; `undefined` where another attempt would fail as well. */
export function waitMs(error: StrongroomError, attempt: number): number | undefined {
  const backOff = Math.min(firstMs * 2 ** (attempt - 1), longestMs) * (1 - Math.random() / 4);
  if (error instanceof ConnectionError) return backOff;
  if (!(error instanceof ApiError) || lasting.test(error.code)) return undefined;
  const { status, retryAfter } = error;
  if (!passing.has(status) && !(status === 409 && retryAfter !== undefined)) return undefined;
  if (retryAfter === undefined) return backOff;
  return retryAfter > retryAfterMax ? undefined : retryAfter * 1000;
}

/** The header `Retry-After` (RFC 9110, section 10.2.3) in seconds; `undefined` where it has neither form. */
export function retryAfterOf(header: string | null): number | undefined {
  if (header === null) return undefined;
  if (/^\d+$/.test(header)) return Number(header);
  const until = Date.parse(header);
  return Number.isNaN(until) ? undefined : Math.max(0, Math.ceil((until - Date.now()) / 1000));
}
