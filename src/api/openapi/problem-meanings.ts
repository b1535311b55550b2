/** What causes each problem, and what the caller can do about it. */
import type { ErrorCode } from '../../base/errors.ts';

interface ProblemMeaning {
  readonly cause: string;
  readonly cure: string;
}

const tryLater =
  'Send the request again after the time in `Retry-After`, with the same idempotency key. The ' +
  'clients do that by themselves.';
const inCode = 'Read `errors`, which the code of the reactor chose, or the logs of the reactor.';

export const problemMeanings: Readonly<Record<ErrorCode, ProblemMeaning>> = {
  validation_failed: {
    cause: 'An attribute, a parameter, or a header has a value that is not valid, or is unknown.',
    cure:
      'Read `errors`: it names each attribute and says what the attribute must be. Correct the request ' +
      'before you send it again.',
  },
  malformed_request: {
    cause: 'The body is not JSON, is nested too deeply, or the request does not follow HTTP.',
    cure: 'Send JSON in UTF-8 and name its length. `detail` says what could not be read.',
  },
  invalid_proxy_request: {
    cause: 'The address, a header, or an expression of a call through a proxy is not valid.',
    cure: 'Read `detail` and `errors`, and correct the call. Nothing was sent to the destination.',
  },
  unauthenticated: {
    cause:
      'The key is missing, misspelled, deleted, or of another vault. A session that was never ' +
      'authorized, or has ended, gets the same response.',
    cure:
      'Check the header of the key. If the key is lost, create another with a management key, or with ' +
      '`strongroom key create`.',
  },
  forbidden: {
    cause:
      'The key is valid, but its permissions or access rules do not allow this on this token or resource.',
    cure:
      'Compare the permission that the operation needs with those of the application. [Explain ' +
      'access](#explainAccess) says which rule decides. Another kind of key may be the right one.',
  },
  reauthentication_required: {
    cause:
      'A person in the console reveals a value, makes a key, or changes a rule, and has not proved to be present ' +
      'within the last five minutes. No API key gets this response.',
    cure: 'Confirm with a passkey, and send the request again.',
  },
  not_found: {
    cause:
      'There is nothing with this id in your tenant: it never existed, was deleted, or has expired.',
    cure: 'Check the id, and that the key belongs to the tenant that created it.',
  },
  method_not_allowed: {
    cause: 'The path exists, but not with this method.',
    cure: 'Use a method that the header `Allow` of the response names.',
  },
  request_timeout: {
    cause: 'The body arrived too slowly.',
    cure: 'Send it again over a faster connection, or in smaller parts.',
  },
  conflict: {
    cause:
      'The id is taken, the resource changed at the same time, or a request with the same idempotency ' +
      'key is still being processed.',
    cure: 'If `detail` names an id, choose another. Otherwise read the resource and send the request again.',
  },
  gone: {
    cause: 'The public product has removed this operation, and this vault never had it.',
    cure: 'The description of the operation names the one that replaces it.',
  },
  precondition_failed: {
    cause:
      'The resource is not in a state that `If-Match` names: it was changed since it was read.',
    cure: 'Read the resource, look at what has changed, and send the request again with its new `ETag`.',
  },
  body_too_large: {
    cause: 'The body is larger than the operation accepts.',
    cure: 'Send several requests, or [import](#createTokens) lines: each line has the limit for itself.',
  },
  unsupported_media_type: {
    cause: 'The media type of the body is not one that the operation accepts.',
    cure: 'Send the `Content-Type` that the operation names, without compression.',
  },
  unprocessable: {
    cause:
      'The request is valid, but the tenant or the resource cannot take it, for example because a quota is reached.',
    cure:
      'Read `detail`, which names the limit or the state. Delete what you no longer need, or ask the ' +
      'operator for a higher quota.',
  },
  too_many_requests: {
    cause: 'The caller has sent more requests than its rate limit allows.',
    cure: tryLater,
  },
  headers_too_large: {
    cause: 'The headers of the request, or its path, are too long.',
    cure: 'Send less: move values from the query to a body, or remove cookies.',
  },
  internal: {
    cause: 'The vault has a defect.',
    cure: 'Give the `SVC-TRACE-ID` of the response to the operator, whose log has the reason.',
  },
  reactor_bad_request: { cause: 'The code of the reactor refused its arguments.', cure: inCode },
  reactor_unauthenticated: {
    cause: 'The code of the reactor was not authenticated by a service that it called.',
    cure: 'Check the credentials in the configuration of the reactor.',
  },
  reactor_payment_required: { cause: 'The code of the reactor asks for a payment.', cure: inCode },
  reactor_forbidden: { cause: 'The code of the reactor refused the caller.', cure: inCode },
  reactor_unprocessable: {
    cause: 'The code of the reactor could not process its arguments.',
    cure: inCode,
  },
  reactor_rate_limited: {
    cause:
      'The code of the reactor, or a service that it called, is rate limited; or all processes for code are busy.',
    cure: tryLater,
  },
  reactor_failed: {
    cause: 'The code of the reactor raised an error, took too long, or returned too much.',
    cure:
      'Read the [logs of the reactor](#listReactorLogs). Run the code with `strongroom reactor run` to ' +
      'see it fail on your machine.',
  },
  reactor_unavailable: {
    cause: 'The code of the reactor, or a service that it called, is unavailable.',
    cure: tryLater,
  },
  integrity: {
    cause: 'A stored row was changed outside the vault, so the vault does not use it.',
    cure: 'Tell the operator at once. `strongroom logs verify --state` finds every changed row.',
  },
  gateway_timeout: {
    cause:
      'Nobody approved or denied the request of a program while it waited, and nothing was sent.',
    cure: 'Send it again when a person is there who decides, or change the `approval` of its egress policy.',
  },
  bad_gateway: {
    cause: 'The destination of the call could not be reached, or its response was not valid.',
    cure:
      'Check the address and the certificate of the destination. The call may have arrived there, so ' +
      'repeat it only if it is safe to do so.',
  },
  loop_detected: {
    cause: 'The call has passed through this vault before.',
    cure: 'Change the destination: a proxy or a reactor leads back to itself.',
  },
  unavailable: {
    cause: 'The vault cannot use its database or its root key at the moment.',
    cure: `${tryLater} If it persists, the operator runs \`strongroom doctor\`.`,
  },
  insufficient_storage: {
    cause:
      'The disk of the vault is nearly full, or the tenant has reached a storage quota. Reading and ' +
      'deleting still work.',
    cure: 'Delete what you no longer need, or ask the operator for more room.',
  },
  overloaded: { cause: 'The vault has more requests than it can process.', cure: tryLater },
};
