/** Failures of sending a request on, as the caller learns of them. */
import { second } from '../../base/clock.ts';
import { type ErrorCode, VaultError } from '../../base/errors.ts';
import type { OutboundError, OutboundFailure } from '../../outbound/error.ts';

/** What is not listed is the destination's failure. */
const codes: Readonly<Partial<Record<OutboundFailure, ErrorCode>>> = {
  timeout: 'request_timeout',
  busy: 'overloaded',
  forbidden_url: 'forbidden',
  forbidden_address: 'forbidden',
  invalid_request: 'invalid_proxy_request',
  aborted: 'malformed_request',
};

/** Tells apart why: the reasons are fixed texts, without anything of the request or the response. */
export function failureOfCall(
  { reason, message }: OutboundError,
  { timeoutMs }: { readonly timeoutMs: number },
): VaultError {
  const code = codes[reason] ?? 'bad_gateway';
  const detail =
    reason === 'timeout'
      ? `The destination did not respond within ${timeoutMs / second} s.`
      : `The destination was not reached, or did not respond as it should: ${message}.`;
  return new VaultError(code, { public: detail, internal: `proxy call: ${message}` });
}
