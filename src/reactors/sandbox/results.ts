/** Parses the bytes of a result, which come from the guest, from the child, or from an attacker who controls both. */
import { isObject } from '../../base/json.ts';
import { parseHostile } from './hostile-json.ts';
import type { CodeError, CodeErrorName, CodePlace, CustomResponse, EndReason } from './sandbox.ts';

export type RunOutcome =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly error: CodeError }
  | { readonly kind: 'ended'; readonly reason: EndReason };

export function outcomeOf(bytes: Buffer): RunOutcome {
  const message = parseHostile(bytes)?.value;
  if (!isObject(message)) return { kind: 'ended', reason: 'result not JSON' };
  if ('value' in message) return { kind: 'returned', value: message['value'] };
  if (isObject(message['error'])) return { kind: 'threw', error: errorOf(message['error']) };
  return endOf(message['ended']);
}

const endings: ReadonlySet<unknown> = new Set<EndReason>([
  'memory',
  'crashed',
  'result too large',
  'result not JSON',
]);

function endOf(reason: unknown): RunOutcome {
  if (endings.has(reason)) return { kind: 'ended', reason: reason as EndReason };
  if (reason !== 'never settles') return { kind: 'ended', reason: 'crashed' };
  const text = 'the function returned a promise that nothing can settle';
  return { kind: 'threw', error: other({ error: [text] }) };
}

type ErrorStatus = readonly [status: number, detail: string];

/** The error classes of the public package, and their messages. */
const kinds: Readonly<
  Record<Exclude<CodeErrorName, 'CustomHttpResponseError' | 'other'>, ErrorStatus>
> = {
  BadRequestError: [400, 'Bad Request'],
  InvalidReactorConfigurationError: [400, 'Invalid Reactor Configuration'],
  AuthenticationError: [401, 'Authentication Failed'],
  InvalidPaymentMethodError: [402, 'Invalid Payment Method'],
  AuthorizationError: [403, 'Forbidden'],
  InvalidReactorFormulaError: [422, 'Invalid Reactor Formula'],
  RateLimitError: [429, 'Rate Limit Exceeded'],
  ReactorRuntimeError: [500, 'Reactor Runtime Error'],
  ServiceUnavailableError: [503, 'Service Unavailable'],
};

const runtimeError: ErrorStatus = kinds.ReactorRuntimeError;

function errorOf(error: Readonly<Record<string, unknown>>): CodeError {
  const { name, response } = error;
  const errors = messagesOf(error['errors']);
  if (name === 'CustomHttpResponseError') return custom(response) ?? other(invalidResponse);
  const place = placeOf(error['place']);
  const at = place && { place };
  if (typeof name !== 'string' || !Object.hasOwn(kinds, name)) return { ...other(errors), ...at };
  const known = name as keyof typeof kinds;
  const [status, detail] = kinds[known];
  return { name: known, status, detail, errors, ...at };
}

function placeOf(given: unknown): CodePlace | undefined {
  const [, line, column] = /^(\d{1,6}):(\d{1,7})$/.exec(String(given)) ?? [];
  return line === undefined ? undefined : { line: Number(line), column: Number(column) };
}

function other(errors: CodeError['errors']): CodeError {
  const [status, detail] = runtimeError;
  return { name: 'other', status, detail, errors };
}

function messagesOf(errors: unknown): CodeError['errors'] {
  const entries = isObject(errors) ? Object.entries(errors) : [];
  return Object.fromEntries(
    entries.map(([name, list]) => {
      const texts = Array.isArray(list) ? list : [];
      return [name, texts.filter((text) => typeof text === 'string')];
    }),
  );
}

const invalidResponse = {
  error: ['CustomHttpResponseError takes a status from 100 to 599, and headers that are strings'],
};

function custom(given: unknown): CodeError | undefined {
  if (!isObject(given)) return undefined;
  const { status, headers, body } = given;
  if (!Number.isInteger(status) || (status as number) < 100 || (status as number) > 599) {
    return undefined;
  }
  const named = Object.entries(isObject(headers) ? headers : {});
  if (!named.every(([name, value]) => isHeader(name, value))) return undefined;
  const response: CustomResponse = {
    status: status as number,
    headers: Object.fromEntries(named.map(([name, value]) => [name, String(value)])),
    body: body ?? null,
  };
  return {
    name: 'CustomHttpResponseError',
    status: response.status,
    detail: 'Custom HTTP Response',
    errors: {},
    response,
  };
}

/** RFC 9110 section 5: a line break in a value would start another header. */
function isHeader(name: string, value: unknown): boolean {
  if (typeof value !== 'string' && typeof value !== 'number') return false;
  return (
    /^[!#$%&'*+.^_`|~\w-]{1,200}$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(String(value))
  );
}
