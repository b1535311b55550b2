/** Problem documents (RFC 9457): the one place where a failure becomes an answer. */
import { type AttributeErrors, type ErrorCode, errorKinds, VaultError } from '../lib/errors.ts';

export const problemMediaType = 'application/problem+json; charset=utf-8';

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly errors?: AttributeErrors;
}

/** What the server below us refuses, by its error code; its own texts may quote the request. */
const serverErrors: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['body_too_large', 'The body exceeds the limit.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type', 'The media type is not supported.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    'malformed_request',
    'Content-Length does not match the body.',
  ],
  FST_ERR_CTP_EMPTY_TYPE: ['unsupported_media_type', 'The content type must be given.'],
  FST_ERR_BAD_URL: ['malformed_request', 'The path is not valid.'],
  FST_ERR_MAX_PARAM_LENGTH: ['malformed_request', 'The path is too long.'],
  FST_ERR_ASYNC_CONSTRAINT: ['malformed_request', 'The request is not valid.'],
};

/** Any failure as a VaultError. What is unknown becomes `internal`, keeping its cause for the log. */
export function vaultErrorOf(error: unknown): VaultError {
  if (error instanceof VaultError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const known = serverErrors[code];
  if (known) return new VaultError(known[0], { public: known[1] });
  return new VaultError('internal', {
    public: 'The vault failed to process the request. Nothing about it is kept but the log entry.',
    internal: describe(error),
    cause: error,
  });
}

/** Name and place of a failure. Messages are left out: JSON.parse, for one, quotes what it was given. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return 'a value that is no error was thrown';
  const frames = (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at '));
  return [error.name, ...frames.slice(0, 8).map((line) => line.trim())].join(' ');
}

export function problemOf(error: VaultError): Problem {
  const { status, title } = errorKinds[error.code];
  return {
    type: `urn:strongroom:problem:${error.code}`,
    title,
    status,
    detail: error.public,
    ...(error.errors && { errors: error.errors }),
  };
}
