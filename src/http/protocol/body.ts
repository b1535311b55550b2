/** Reading request bodies: bytes that must be UTF-8, and then JSON, or nothing. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { invalid, VaultError } from '../../base/errors.ts';
import { exceededLimit } from '../../base/json.ts';
import { membersForm, membersMaxOf } from '../../rules/members.ts';
import { bodyNestingMax, deepAttributeOf } from './nesting.ts';
import type { RequestContext } from './request-context.ts';
import { linesMediaType, type Route } from './route.ts';

export const bodyBytesMax = 1_048_576;

/** Chunks that are held one by one: each takes some hundred bytes besides its own. */
const chunksHeldMax = 1_024;

/** The media types that clients use for JSON. Each route declares which it accepts. */
const jsonMediaTypes: readonly string[] = [
  'application/json',
  'application/merge-patch+json',
  'application/json-patch+json',
];

/**
 * Reads a JSON body as a whole. A body of lines is not read here: its stream takes the lines as they arrive.
 * `undefined` if there is no body.
 * @throws VaultError `unsupported_media_type`, `body_too_large`, and as {@link parseJson} does.
 */
export function readBody(route: Route, context: RequestContext): Promise<void> | undefined {
  const { headers, method } = context;
  const hasNone = method === 'GET' || method === 'HEAD' || isEmpty(headers);
  return hasNone ? undefined : readSent(route, context);
}

async function readSent(route: Route, context: RequestContext): Promise<void> {
  const { headers } = context;
  const mediaType = mediaTypeOf(headers['content-type']);
  refuseEncoded(headers);
  if ('stream' in route && mediaType === linesMediaType) return;
  const isJson = mediaType !== undefined && jsonMediaTypes.includes(mediaType);
  // In chunks it may turn out to be empty, and then it has no media type.
  if (!isJson && route.body) throw unsupported();
  const bytes = await bytesOf(context, bodyBytesMax);
  if (!isJson && bytes.length > 0) throw unsupported();
  // Parsing the body and handling it is most of what the request costs.
  const turn = context.share?.turn();
  if (turn) await turn;
  context.body = parseBody(bytes, membersMaxOf(context.caller));
}

/** Where no body comes. Clients send a media type all the same. */
function isEmpty(headers: IncomingMessage['headers']): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] === undefined && (length === undefined || length === '0');
}

function unsupported(): VaultError {
  return new VaultError('unsupported_media_type', { public: 'The media type is not supported.' });
}

/** A compressed body could inflate to a thousand times its size, past every limit on the way. */
function refuseEncoded({ 'content-encoding': encoding }: IncomingMessage['headers']): void {
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return;
  throw new VaultError('unsupported_media_type', {
    public: 'Content-Encoding is not supported; the body must be sent without it.',
    headers: { 'accept-encoding': 'identity' },
  });
}

/**
 * The whole body. @throws VaultError `body_too_large`, `too_many_requests` from its share, and where the connection
 * ends before the body does.
 */
export function bytesOf(
  { request, share }: Pick<RequestContext, 'request' | 'share'>,
  bytesMax: number,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length']) > bytesMax) throw tooLarge();
    // A destroyed request emits none of the events below.
    if (request.destroyed) throw connectionEnded();
    const joined: Buffer[] = [];
    let chunks: Buffer[] = [];
    let length = 0;
    const take = (chunk: Buffer) => {
      length += chunk.length;
      try {
        if (length > bytesMax) throw tooLarge();
        share?.hold(chunk.length);
        chunks.push(chunk);
        if (chunks.length === chunksHeldMax) {
          joined.push(Buffer.concat(chunks));
          chunks = [];
        }
      } catch (error) {
        request.off('data', take);
        reject(error);
      }
    };
    request.on('data', take);
    request.once('end', () => {
      const all = joined.length === 0 ? chunks : [...joined, ...chunks];
      resolve(all.length === 1 ? (all[0] as Buffer) : Buffer.concat(all));
    });
    request.once('error', () => reject(connectionEnded()));
  });
}

export function connectionEnded(): VaultError {
  return malformed('The connection ended before the body did.');
}

function tooLarge(): VaultError {
  return new VaultError('body_too_large', { public: 'The body exceeds the limit.' });
}

/**
 * @throws VaultError `malformed_request`, without the parser's words, which quote the body, and
 * `validation_failed` for a body with too many members, or one that is nested too deeply.
 */
function parseBody(bytes: Buffer, membersMax: number): unknown {
  return bytes.length === 0 ? undefined : parseJson(bytes, { noun: 'body', membersMax });
}

export interface JsonText {
  readonly noun: 'body' | 'line';
  readonly membersMax: number;
}

/** @throws VaultError as for a body. */
export function parseJson(bytes: Buffer, { noun, membersMax }: JsonText): unknown {
  // Decoding would replace bytes that are not UTF-8, so something else than was sent would be stored.
  if (!isUtf8(bytes)) throw malformed(`The ${noun} is not valid UTF-8.`);
  const exceeded = exceededLimit(bytes, { levelsMax: bodyNestingMax, membersMax });
  if (exceeded === 'membersMax') throw invalid(noun, membersForm(membersMax));
  const json = jsonOf(bytes, noun);
  if (exceeded === undefined) return json;
  const path = deepAttributeOf(json) ?? noun;
  throw invalid(path, `must not be nested deeper than ${bodyNestingMax} levels`);
}

function jsonOf(bytes: Buffer, noun: JsonText['noun']): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw malformed(`The ${noun} is not valid JSON.`);
  }
}

function malformed(message: string): VaultError {
  return new VaultError('malformed_request', { public: message });
}

/** The media type alone, in lower case, without its parameters. */
function mediaTypeOf(contentType: string | undefined): string | undefined {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase();
}

/** @throws VaultError `unsupported_media_type` when the body is not sent as the route takes it. */
export function checkMediaType(
  { body, mediaType = 'application/json', otherMediaType, bodyMayBeEmpty = false }: Route,
  { headers, method }: RequestContext,
): void {
  const given = mediaTypeOf(headers['content-type']);
  if (!body || given === mediaType || (bodyMayBeEmpty && isEmpty(headers))) return;
  if (given !== undefined && given === otherMediaType) return;
  throw new VaultError('unsupported_media_type', {
    public: `The body must be sent as ${mediaType}.`,
    headers: method === 'PATCH' ? { 'accept-patch': mediaType } : {},
  });
}
