/** Problem documents (RFC 9457): the one place where a failure becomes a response. */
import {
  type AttributeErrors,
  type ErrorCode,
  errorKinds,
  reasonOf,
  VaultError,
} from '../../lib/errors.ts';

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
  FST_ERR_CTP_EMPTY_TYPE: ['unsupported_media_type', 'The Content-Type header is required.'],
  FST_ERR_BAD_URL: ['malformed_request', 'The path is not valid.'],
  FST_ERR_MAX_PARAM_LENGTH: ['malformed_request', 'The path is too long.'],
  FST_ERR_ASYNC_CONSTRAINT: ['malformed_request', 'The request is not valid.'],
};

/** What is wrong with a connection that brought no request, by the code of the HTTP parser. */
const connectionErrors: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'The request line and headers exceed the limit.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'The request took too long to arrive.'],
};

export function connectionErrorOf(parserCode: string): VaultError {
  const [code, message] = connectionErrors[parserCode] ?? [
    'malformed_request',
    'The bytes received are not an HTTP request.',
  ];
  return new VaultError(code, { public: message });
}

/** It may have failed after the commit, so it must not promise that nothing happened. */
const internalErrorDetail =
  'The vault failed to process the request. It may have taken effect; if it did, the audit log has ' +
  'an entry about it.';

/** Any failure as a VaultError. What is unknown becomes `internal`, keeping its cause for the log. */
export function vaultErrorOf(error: unknown): VaultError {
  if (error instanceof VaultError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const known = serverErrors[code];
  if (known) return new VaultError(known[0], { public: known[1] });
  if (isCutShort(error)) {
    return new VaultError('malformed_request', {
      public: 'The connection ended before the body did.',
    });
  }
  return new VaultError('internal', {
    public: internalErrorDetail,
    internal: reasonOf(error),
    cause: error,
  });
}

/** The client went away in the middle of its body. Fastify gives such an error its 400, and no code of its own. */
function isCutShort(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error) || !('statusCode' in error)) return false;
  return error.code === 'ECONNRESET' && error.statusCode === 400;
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
