/** Problem documents (RFC 9457): the one place where a failure becomes a response. */
import {
  type AttributeErrors,
  type ErrorCode,
  errorKinds,
  reasonOf,
  VaultError,
} from '../../base/errors.ts';

export const problemMediaType = 'application/problem+json; charset=utf-8';

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly errors?: AttributeErrors;
}

/** The error of a connection that brought no request, by the code of the HTTP parser. */
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

/** Any failure as a VaultError. An unknown one becomes `internal` and retains its cause for the log. */
export function vaultErrorOf(error: unknown): VaultError {
  if (error instanceof VaultError) return error;
  return new VaultError('internal', {
    public: internalErrorDetail,
    internal: reasonOf(error),
    cause: error,
  });
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
