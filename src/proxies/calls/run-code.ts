/** Code transforms: their input from a request or a response, and the use of their result. */
import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { Readable } from 'node:stream';
import { VaultError } from '../../base/errors.ts';
import { isObject, type Json, type JsonObject } from '../../base/json.ts';
import { timeoutMsOf } from '../../reactors/code/code-runtime.ts';
import { rightsIn } from '../../reactors/runs/holder.ts';
import { type CodeResponse, failure } from '../../reactors/runs/outcome.ts';
import { headersOfCode } from '../../reactors/runs/response-headers.ts';
import { type CodeRunning, runCode } from '../../reactors/runs/run.ts';
import type { CodeTransform } from '../transforms/definitions.ts';
import { egressId, ephemeralId, invalidCall } from './called-proxy.ts';
import { proxyHolder } from './holder.ts';
import type { ProxyCall, Writable } from './proxy-call.ts';

/** The largest body that code can receive. */
const codeBodyBytesMax = 1_048_576;

/** A message as the code returns it. */
export interface CodedMessage {
  /** Alternating names and values. */
  readonly headers: readonly string[];
  /** `undefined` if the message has no body. */
  readonly text: string | undefined;
}

export type TransformOutcome =
  | { readonly kind: 'message'; readonly message: CodedMessage; readonly status?: number }
  /** Replaces the destination's response. */
  | { readonly kind: 'response'; readonly response: CodeResponse };

export interface CodeOfCall {
  readonly call: ProxyCall;
  readonly transform: CodeTransform;
}

/**
 * Returns the request to send, or the response that replaces the destination's.
 * @throws VaultError the failure of the code; `invalid_proxy_request` for a body that is not UTF-8 text,
 * `body_too_large`.
 */
export async function codeRequest(
  tools: CodeRunning,
  { call, transform }: CodeOfCall,
  written: Writable,
): Promise<TransformOutcome> {
  const text = await textOfRequest(call, written);
  const message = { headers: written.headers, text };
  const { path, query } = written;
  const given = {
    ...givenOf(message),
    method: call.method,
    path,
    query: query === undefined ? '' : `?${query}`,
  };
  return coded(tools, { call, transform }, { side: 'req', given, message });
}

/** @throws VaultError the failure of the code; `body_too_large`. */
export async function codeResponse(
  tools: CodeRunning,
  { call, transform }: CodeOfCall,
  { message, status }: { readonly message: CodedMessage; readonly status: number },
): Promise<TransformOutcome> {
  // Parsing JSON blocks the event loop.
  if (Buffer.byteLength(message.text ?? '') > codeBodyBytesMax) throw tooLarge();
  const given = { ...givenOf(message), statusCode: status };
  return coded(tools, { call, transform }, { side: 'res', given, message });
}

const sides = { req: 'request', res: 'response' } as const;

interface MessageSide {
  readonly side: 'req' | 'res';
  readonly given: JsonObject;
  readonly message: CodedMessage;
}

async function coded(
  tools: CodeRunning,
  { call, transform }: CodeOfCall,
  { side, given, message }: MessageSide,
): Promise<TransformOutcome> {
  const { proxy, caller, signal } = call;
  const { runtime, code } = transform;
  const isStored = proxy.id !== ephemeralId && proxy.id !== egressId;
  assert(isStored, 'a proxy that a call describes itself has no code');
  const isNewer = runtime.image === 'node22';
  const { outcome } = await runCode(tools, {
    caller,
    code,
    runtime,
    configuration: Object.fromEntries(proxy.configuration?.reveal() ?? []),
    input: { [isNewer ? side : 'args']: given },
    holder: proxyHolder(proxy.id, sides[side]),
    hasRights: rightsIn({ application_id: proxy.applicationId ?? null, runtime }) !== undefined,
    allowedHosts: null,
    timeoutMs: timeoutMsOf(runtime),
    signal,
  });
  if (outcome.kind === 'failed') throw outcome.failure.error;
  if (outcome.kind === 'responded') return { kind: 'response', response: outcome.response };
  return isNewer
    ? newerOf(outcome.value, { side, message })
    : { kind: 'message', message: replaced(message, outcome.value) };
}

/** `{ req }` continues the call; `{ res }` responds in place of the destination, or replaces its response. */
function newerOf(
  value: Json,
  { side, message }: Pick<MessageSide, 'side' | 'message'>,
): TransformOutcome {
  const { req = null, res = null } = isObject(value) ? value : {};
  if (side === 'req' && res === null) {
    return { kind: 'message', message: replaced(message, req) };
  }
  if (res !== null && !isObject(res)) throw failure('its res must be an object').error;
  const { statusCode } = res ?? {};
  if (statusCode !== undefined && !isStatus(statusCode)) {
    throw failure('the statusCode of its response must be from 200 to 599').error;
  }
  if (side === 'res') {
    const changed = replaced(message, res);
    return { kind: 'message', message: changed, ...(statusCode && { status: statusCode }) };
  }
  const headers = headersOfCode(res?.['headers'] ?? {});
  if (headers === undefined) throw failure('the headers of its response must be texts').error;
  return {
    kind: 'response',
    response: { status: statusCode ?? 200, headers, body: res?.['body'] },
  };
}

function isStatus(status: Json): status is number {
  return typeof status === 'number' && Number.isInteger(status) && status >= 200 && status <= 599;
}

/** JSON as its value, everything else as a string. */
function givenOf({ headers, text }: CodedMessage): JsonObject {
  return { headers: namedOf(headers), body: text === undefined ? null : bodyOf(headers, text) };
}

function bodyOf(headers: readonly string[], text: string): Json {
  const type = headers.findIndex((name, at) => at % 2 === 0 && /^content-type$/i.test(name));
  if (!/^\s*application\/(?:[\w.+-]*\+)?json\b/i.test(headers[type + 1] ?? '')) return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** Joins the values of each name, as HTTP allows. */
function namedOf(headers: readonly string[]): JsonObject {
  const named = new Map<string, string>();
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const [name = '', value = ''] = [headers[at], headers[at + 1]];
    const known = named.get(name);
    named.set(name, known === undefined ? value : `${known}, ${value}`);
  }
  return Object.fromEntries(named);
}

/** Framing headers follow from the body of the message. */
const framing = /^(?:content-length|transfer-encoding|connection|keep-alive|te|trailer|upgrade)$/i;

/** Properties that the code omits stay unchanged. */
function replaced(message: CodedMessage, value: Json): CodedMessage {
  if (value === null) return message;
  if (!isObject(value)) throw failure('it must return an object with body or headers').error;
  const { body, headers } = value;
  const named = headers === undefined ? undefined : headersOfCode(headers);
  if (headers !== undefined && named === undefined) {
    throw failure('the headers that it returns must be texts').error;
  }
  const flat = named && Object.entries(named).filter(([name]) => !framing.test(name));
  return {
    headers: flat?.flat() ?? message.headers,
    text: body === undefined ? message.text : textOfBody(body),
  };
}

function textOfBody(body: Json): string | undefined {
  if (body === null) return undefined;
  return typeof body === 'string' ? body : JSON.stringify(body);
}

async function textOfRequest(call: ProxyCall, { body }: Writable): Promise<string | undefined> {
  const { content } = body;
  if (content === undefined) return undefined;
  const bytes = content instanceof Readable ? await collected(call, content) : Buffer.from(content);
  if (bytes.length > codeBodyBytesMax) throw tooLarge();
  if (!isUtf8(bytes)) throw invalidCall('body', 'must be text in UTF-8 for a code transform');
  return bytes.toString('utf8');
}

async function collected({ hold, body }: ProxyCall, stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > codeBodyBytesMax) throw tooLarge();
      hold(chunk.length);
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof VaultError ? error : (body.failure() ?? brokenOff());
  }
  return Buffer.concat(chunks, bytes);
}

function tooLarge(): VaultError {
  return new VaultError('body_too_large', {
    public: `A body for a code transform must have at most ${codeBodyBytesMax} bytes.`,
  });
}

function brokenOff(): VaultError {
  return new VaultError('malformed_request', {
    public: 'The connection ended before the body did.',
  });
}
