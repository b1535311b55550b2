/** The failures of calls to other hosts. */
import { systemCodeOf } from '../base/errors.ts';

/** Each reason with its message. No message contains a part of the request, of the response, or of the URL. */
const reasons = {
  forbidden_url: 'the URL must be https, without a user name, and not on the port of the database',
  forbidden_address: 'the host has no public address and is not on the allow-list',
  forbidden_redirect: 'a redirect to another origin would send it the body',
  too_many_redirects: 'the host redirects too often',
  bad_redirect: 'the host redirects to an invalid URL',
  dns: 'the host cannot be reached: its name cannot be resolved',
  connect: 'the host cannot be reached: no connection can be opened',
  tls: 'the host cannot be reached: no trusted TLS connection can be made',
  client_key: 'the client key is not of an elliptic curve or RSA with at most 4,096 bits',
  tls_too_large: 'the host sends too many or too large certificates',
  expensive_tls:
    'TLS handshakes with the host take too much processor time, so it is not called for a while',
  key_updates: 'the host changes the keys of its TLS connection too often',
  reset: 'the host closed the connection',
  invalid_response: 'the host sent something other than a valid HTTP response within the limits',
  invalid_request: 'the method or a header is not valid in HTTP',
  aborted: 'the caller closed the connection, or sent a body of another length than announced',
  busy: 'too many requests wait to be sent',
  timeout: 'the host took longer than the time limit',
  too_large: 'the response exceeds the size limit',
} as const;

export type OutboundFailure = keyof typeof reasons;

/** An error code of the network layer, such as ENOTFOUND. The pattern excludes anything that could hold data. */
const codeForm = /^[A-Z][A-Z0-9_]{1,60}$/;

export class OutboundError extends Error {
  readonly reason: OutboundFailure;

  constructor(reason: OutboundFailure, below?: unknown) {
    const code = systemCodeOf(below) ?? '';
    super(codeForm.test(code) ? `${reasons[reason]} (${code})` : reasons[reason]);
    this.name = 'OutboundError';
    this.reason = reason;
  }
}

/** By the codes of Node, libuv, OpenSSL, and the HTTP parser. The first matching row applies. */
const reasonsByCode: readonly (readonly [RegExp, OutboundFailure])[] = [
  [/^(?:ENOTFOUND|ENODATA|ESERVFAIL|EAI_\w+)$/, 'dns'],
  [/^E(?:CONNREFUSED|TIMEDOUT|ACCES|PERM|INVAL|MFILE|NFILE)$/, 'connect'],
  [/^E(?:(?:HOST|NET)(?:UNREACH|DOWN)|ADDRNOTAVAIL|AFNOSUPPORT)$/, 'connect'],
  [/^(?:EPROTO$|ERR_TLS_|ERR_SSL_|ERR_OSSL_)/, 'tls'],
  // The results of X.509 verification, which OpenSSL numbers and Node names.
  [/CERT|^(?:CRL_|UNABLE_TO_|PATH_LENGTH_|INVALID_(?:CA|PURPOSE)|HOSTNAME_MISMATCH)/, 'tls'],
  [/^HPE_/, 'invalid_response'],
  [/^ERR_(?:INVALID_CHAR|INVALID_HTTP_TOKEN|UNESCAPED_CHARACTERS|HTTP_\w+)$/, 'invalid_request'],
];

/** Whether the host could not be reached, or the call broke off, so that another attempt may succeed. */
export function isUnreachable({ reason }: OutboundError): boolean {
  return unreachable.has(reason);
}

const unreachable: ReadonlySet<OutboundFailure> = new Set([
  'dns',
  'connect',
  'tls',
  'tls_too_large',
  'expensive_tls',
  'key_updates',
  'reset',
  'invalid_response',
]);

/** Maps an error of the network layer to its reason; a reset connection if the error has no known code. */
export function failureOf(error: unknown): OutboundError {
  if (error instanceof OutboundError) return error;
  const code = systemCodeOf(error) ?? '';
  const reason = reasonsByCode.find(([form]) => form.test(code))?.[1] ?? 'reset';
  return new OutboundError(reason, error);
}
