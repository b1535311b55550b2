/** Maps failures of forwarding to the errors that callers see. */
import { second } from '../../base/clock.ts';
import { type ErrorCode, VaultError } from '../../base/errors.ts';
import type { OutboundError, OutboundFailure } from '../../outbound/error.ts';

/** Any other failure is the destination's. */
const codes: Readonly<Partial<Record<OutboundFailure, ErrorCode>>> = {
  timeout: 'request_timeout',
  busy: 'overloaded',
  forbidden_url: 'forbidden',
  forbidden_address: 'forbidden',
  invalid_request: 'invalid_proxy_request',
  aborted: 'malformed_request',
};

/** Reports the reason as a fixed string, without any part of the request or the response. */
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
