/** How the operator's verification service is called, as the operator writes it. */

import { invalid } from '../../base/errors.ts';
import { isObject, type Json } from '../../base/json.ts';
import { nodeHttp } from '../../base/node-http.ts';
import { compileExpression } from '../../expressions/expression.ts';
import { compileTemplate } from '../../expressions/template.ts';
import { type AllowList, hostAndPort } from '../../outbound/allow-list.ts';

export interface BankHostConfig {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON whose strings are expressions over `routing_number`, `account_number`, `country_code`. */
  readonly request: Json;
  /** An expression over `status` and `body` of the response that gives one of the three statuses. */
  readonly answer: string;
  /** For all attempts together. */
  readonly timeoutMs: number;
  readonly attemptsMax: number;
}

export const requestDefault: Json = {
  country_code: '{{ country_code }}',
  routing_number: '{{ routing_number }}',
  account_number: '{{ account_number }}',
};

export const responseDefault = '{{ body.status }}';

/** @throws VaultError `validation_failed`, as does everything below; none of it quotes the text. */
export function parseUrl(text: string, allow: AllowList): string {
  const url = URL.parse(text);
  const callable = url && (url.protocol === 'https:' || allow.has(hostAndPort(url)));
  if (callable && url.username === '' && url.password === '') return url.href;
  throw invalid(
    'url',
    'must be an https URL without a user name; http is for hosts in STRONGROOM_OUTBOUND_ALLOW',
  );
}

export function parseHeaders(text: string): Readonly<Record<string, string>> {
  const headers = parseJson(text);
  if (isObject(headers) && Object.entries(headers).every(isHeader)) {
    return headers as Readonly<Record<string, string>>;
  }
  throw invalid('headers', 'must be a JSON object of header names and their values');
}

export function parseRequest(text: string): Json {
  const request = parseJson(text);
  compileTemplate(request, 'request');
  return request;
}

export function parseResponse(text: string): string {
  compileExpression(text, 'answer');
  return text;
}

function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw invalid('body', 'must be JSON');
  }
}

function isHeader([name, value]: readonly [string, unknown]): boolean {
  if (typeof value !== 'string') return false;
  try {
    nodeHttp.validateHeaderName(name);
    nodeHttp.validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}
