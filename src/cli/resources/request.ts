/** One request of a command to a running vault. */
import { isObject, type Json } from '../../base/json.ts';
import { readGivenStream } from '../terminal/given-text.ts';
import { ResponseError } from '../terminal/response-error.ts';
import { requireEncrypted } from '../terminal/sent-key.ts';
import type { Profile } from './profiles.ts';

export interface CommandRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body?: Json;
  readonly mediaType?: string | undefined;
  /** For what may wait for a person. */
  readonly timeoutMs?: number;
}

/** Requests of commands end at the latest when the vault would end them. */
const timeoutMsDefault = 75_000;

/**
 * @returns the body of the response; undefined where it has none.
 * @throws ResponseError with what the vault says is wrong.
 * @throws UsageError for a profile or a STRONGROOM_URL that would send the key over the network in plaintext.
 */
export async function requestVault(
  { url, key }: Profile,
  { method, path, body, mediaType, timeoutMs = timeoutMsDefault }: CommandRequest,
): Promise<unknown> {
  if (URL.canParse(url)) requireEncrypted(new URL(url), 'the address of the vault');
  const address = url.replace(/\/$/, '');
  const response = await fetch(address + path, {
    method,
    // A redirect would carry the key to another address.
    redirect: 'error',
    headers: { 'SVC-API-KEY': key, ...(mediaType !== undefined && { 'content-type': mediaType }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((error: Error) => {
    const { code = error.name } = (error.cause ?? {}) as NodeJS.ErrnoException;
    throw new ResponseError(`cannot reach ${address}: ${code}; is the vault running there?`);
  });
  const text = await readGivenStream('the response', response.body);
  const value = text === '' ? undefined : parsed(text);
  if (response.ok) return value;
  throw new ResponseError(refusalOf(response.status, value), response.status);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ResponseError('the response is not JSON; is there a vault at this address?');
  }
}

/** The detail, or each attribute that is wrong with its option. */
function refusalOf(status: number, problem: unknown): string {
  const { detail, title, errors } = isObject(problem) ? problem : {};
  const messages = Object.entries(isObject(errors) ? errors : {}).flatMap(([attribute, list]) =>
    (Array.isArray(list) ? list : []).map((message) => `${attribute} ${message}`),
  );
  const text = messages.length > 0 ? messages.join('; ') : String(detail ?? title ?? '');
  return `the vault returned ${status}: ${text}`;
}
