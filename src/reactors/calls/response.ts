/** Turns the code's return value into the response for the caller. Each image has its own form. */
import { isObject, type Json, type JsonObject } from '../../base/json.ts';
import type { MadeReply } from '../../rules/reply.ts';
import { type CodeFailure, type CodeResponse, failure } from '../runs/outcome.ts';
import { headersOfCode } from '../runs/response-headers.ts';
import type { CalledReactor } from './called-reactor.ts';

/** The response before any part of it is tokenized. */
export type ShapedResponse =
  | { readonly made: MadeReply }
  | { readonly body: JsonObject; readonly tokenize: Json | undefined }
  | { readonly failure: CodeFailure };

export function shapeOf({ definition }: CalledReactor, value: Json): ShapedResponse {
  return definition.runtime.image === 'node22' ? madeBy(value) : partsOf(value);
}

const parts = ['raw', 'body', 'headers'] as const;

function partsOf(value: Json): ShapedResponse {
  if (value === null) return { body: {}, tokenize: undefined };
  if (!isObject(value))
    return { failure: failure('it must return an object with raw or tokenize') };
  const body = Object.fromEntries(
    parts.flatMap((name) => (Object.hasOwn(value, name) ? [[name, value[name] ?? null]] : [])),
  ) as JsonObject;
  const { tokenize = null } = value;
  return { body, tokenize: tokenize ?? undefined };
}

function madeBy(value: Json): ShapedResponse {
  const res = isObject(value) ? value['res'] : undefined;
  if (!isObject(res ?? null)) return { failure: failure('it must return an object with res') };
  const { statusCode = 200, headers = {}, body } = res as JsonObject;
  if (!isStatus(statusCode)) {
    return { failure: failure('the statusCode of its response must be from 200 to 599') };
  }
  const named = headersOfCode(headers);
  if (named === undefined) return { failure: failure('the headers of its response must be texts') };
  return { made: { status: statusCode, headers: named, ...(body !== undefined && { body }) } };
}

function isStatus(status: Json): status is number {
  return typeof status === 'number' && Number.isInteger(status) && status >= 200 && status <= 599;
}

/** A response that the code threw. */
export function madeByError({ status, headers, body }: CodeResponse): ShapedResponse {
  const named = headersOfCode(headers);
  if (named === undefined) return { failure: failure('the headers of its response must be texts') };
  return { made: { status, headers: named, ...(body !== undefined && { body }) } };
}
