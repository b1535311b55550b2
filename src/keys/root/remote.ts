/** Requests to the service that holds a remote root key: bounded, with errors that carry no content. */

import { readFileSync } from 'node:fs';
import { systemCodeOf, VaultError } from '../../base/errors.ts';
import { isObject, type JsonObject } from '../../base/json.ts';
import { RootKeyError } from './root-key.ts';

/** A key management service that needs longer is treated as one that does not respond. */
const requestTimeoutMs = 5_000;

/** A wrapped key takes less than 1 KiB; lists of policies make a login the longest response. */
const responseBytesMax = 64 * 1024;

/** A response of the service. Its body may contain keys, so no error quotes it. */
export interface RemoteResponse {
  readonly status: number;
  readonly text: string;
}

/**
 * Sends one request. It follows no redirect, because the request carries a credential.
 *
 * @param origin names the service in errors.
 * @throws VaultError `unavailable` when there is no complete response in time.
 */
export async function requestRemote(
  origin: string,
  url: string | URL,
  init: RequestInit,
): Promise<RemoteResponse> {
  try {
    const signal = AbortSignal.timeout(requestTimeoutMs);
    const response = await fetch(url, { ...init, redirect: 'error', signal });
    return { status: response.status, text: await boundedText(response) };
  } catch (error) {
    throw remoteUnavailable(origin, `cannot be reached (${reasonOf(error)})`, error);
  }
}

/** The body of a response; empty where it is not a JSON object. */
export function jsonOf({ text }: RemoteResponse): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    // A proxy between the vault and the service may respond with HTML; the status says enough.
    return {};
  }
}

const loopback = /^(localhost|127(\.[0-9]+){3}|\[::1\])$/;

/**
 * The origin of the address in a variable. Requests carry credentials, so plain HTTP is for an agent on the same
 * machine.
 * @throws RootKeyError for any other text.
 */
export function addressIn(variable: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLocal = url?.protocol === 'http:' && loopback.test(url.hostname);
  if (url === undefined || !(url.protocol === 'https:' || isLocal)) {
    throw new RootKeyError(
      `STRONGROOM_${variable} must be an https address, or an http address of this machine`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new RootKeyError(`STRONGROOM_${variable} must not contain credentials`);
  }
  return new URL(url.origin);
}

/** The error for a service that does not do what the vault needs; the problem is the operator's, not the caller's. */
export function remoteUnavailable(origin: string, problem: string, cause?: unknown): VaultError {
  return new VaultError('unavailable', {
    public: 'The root key of this vault is temporarily unavailable.',
    internal: `the root key (${origin}) ${problem}`,
    headers: { 'retry-after': '1' },
    cause,
  });
}

/**
 * The credential in a file, without white space around it. It is read each time, because agents replace such files.
 * @throws VaultError `unavailable` when the file cannot be read.
 */
export function credentialOf({ origin }: { readonly origin: string }, file = ''): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    const code = systemCodeOf(error) ?? 'failed';
    throw remoteUnavailable(origin, `has its credentials in ${file}: ${code}`, error);
  }
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > responseBytesMax) throw new Error('the response is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** `fetch` wraps the system's error, whose code says what happened and quotes nothing. */
function reasonOf(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') return 'timeout';
  const cause = error instanceof Error ? error.cause : undefined;
  return systemCodeOf(cause) ?? 'failed';
}
