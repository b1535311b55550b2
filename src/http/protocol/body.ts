/** Reading request bodies: bytes that must be UTF-8, and then JSON, or nothing. */
import { isUtf8 } from 'node:buffer';
import type { FastifyRequest } from 'fastify';
import { invalid, VaultError } from '../../lib/errors.ts';
import { bodyNestingMax, deepAttributeOf, isNestedDeeper } from './nesting.ts';
import type { Route } from './route.ts';

export const bodyBytesMax = 1_048_576;

/** The media types under which clients send JSON. Each route says which it accepts. */
export const jsonMediaTypes = [
  'application/json',
  'application/merge-patch+json',
  'application/json-patch+json',
];

/**
 * @throws VaultError `malformed_request`, without the parser's words, which quote the body, and
 * `validation_failed` for what is nested so deep that nothing may go through it.
 */
export function parseBody(bytes: Buffer): unknown {
  return bytes.length === 0 ? undefined : parseJson(bytes, 'body');
}

/** @throws VaultError as for a body. */
export function parseJson(bytes: Buffer, noun: 'body' | 'line'): unknown {
  // Decoding would replace bytes that are not UTF-8, so something else than was sent would be stored.
  if (!isUtf8(bytes)) throw malformed(`The ${noun} is not valid UTF-8.`);
  const json = jsonOf(bytes, noun);
  if (!isNestedDeeper(bytes, bodyNestingMax)) return json;
  const path = deepAttributeOf(json) ?? noun;
  throw invalid(path, `must not be nested deeper than ${bodyNestingMax} levels`);
}

function jsonOf(bytes: Buffer, noun: 'body' | 'line'): unknown {
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
  { body, mediaType = 'application/json' }: Route,
  request: FastifyRequest,
): void {
  if (!body || mediaTypeOf(request.headers['content-type']) === mediaType) return;
  throw new VaultError('unsupported_media_type', {
    public: `The body must be sent as ${mediaType}.`,
    headers: request.method === 'PATCH' ? { 'accept-patch': mediaType } : {},
  });
}
