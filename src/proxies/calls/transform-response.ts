/** Applies the transforms of a response in order: masks, appended values, and tokens created from it. */
import { Readable } from 'node:stream';
import { ExpressionError } from '../../expressions/evaluation/error.ts';
import type { Evaluation } from '../../expressions/evaluation/evaluation.ts';
import {
  compileText,
  compileValue,
  evaluateText,
  evaluateValue,
} from '../../expressions/request-parts/compile.ts';
import type { RequestScope } from '../../expressions/request-parts/scope.ts';
import type { CodeResponse } from '../../reactors/runs/outcome.ts';
import { appendJson } from '../transforms/append.ts';
import type { CodeTransform, ResponseTransform } from '../transforms/definitions.ts';
import type { Mask } from '../transforms/mask.ts';
import { madeResponse } from './made-response.ts';
import type { ProxyResponse } from './proxy-call.ts';
import { untransformable } from './response-body.ts';
import type { CodedMessage, TransformOutcome } from './run-code.ts';

/** A response while it is transformed. */
export interface TransformedResponse {
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** `undefined` if the response has no body, which transforms do not change. */
  readonly text: string | undefined;
  /** Set if code replaces the destination's status. */
  readonly status?: number;
  /** Replaces the whole response; no further transform applies to it. */
  readonly made?: CodeResponse;
}

export interface Transforming {
  readonly transforms: readonly ResponseTransform[];
  readonly scope: RequestScope;
  readonly evaluation: Evaluation;
  readonly runCode: (transform: CodeTransform, response: CodedMessage) => Promise<TransformOutcome>;
  /** For the proxy's tenant. */
  readonly maskText: (text: string, mask: Mask) => Promise<string>;
}

type Apply<T extends ResponseTransform['type']> = (
  response: TransformedResponse,
  transform: Extract<ResponseTransform, { readonly type: T }>,
  given: Omit<Transforming, 'transforms'>,
) => TransformedResponse | Promise<TransformedResponse>;

const rows: { readonly [T in ResponseTransform['type']]: Apply<T> } = {
  // Its token was created earlier, from the original response of the destination.
  tokenize: (response) => response,
  code: async (response, transform, { runCode }) => {
    const coded = await runCode(transform, response);
    if (coded.kind === 'response') return { ...response, made: coded.response };
    const { message, status } = coded;
    return { ...response, ...message, ...(status !== undefined && { status }) };
  },
  mask: async (response, mask, { maskText }) => {
    const { text } = response;
    if (text === undefined) return response;
    return { ...response, text: await maskText(text, mask) };
  },
  append_json: async (response, { location, value }, { scope, evaluation }) => {
    if (response.text === undefined) return response;
    const appended = evaluateValue(compileValue(value), scope, evaluation);
    return { ...response, text: await appendJson(response.text, location, appended) };
  },
  append_text: (response, { value }, { scope, evaluation }) => {
    if (response.text === undefined) return response;
    const appended = evaluateText(compileText(value, 'text'), scope, evaluation);
    return { ...response, text: response.text + appended };
  },
  append_header: (response, { location, value }, { scope, evaluation }) => {
    const written = evaluateText(compileText(value, 'header'), scope, evaluation);
    return {
      ...response,
      headers: [...withoutHeaders(response.headers, [location]), location, written],
    };
  },
};

/** @throws VaultError `bad_gateway`, which contains nothing of the response. */
export async function transformResponse(
  response: TransformedResponse,
  { transforms, ...given }: Transforming,
): Promise<TransformedResponse> {
  let transformed = response;
  for (const transform of transforms) {
    if (transformed.made) break;
    const apply = rows[transform.type] as Apply<ResponseTransform['type']>;
    try {
      transformed = await apply(transformed, transform as never, given);
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      throw untransformable(error.public);
    }
  }
  return transformed;
}

/** Headers that describe the bytes of a body, which a transform has replaced. */
const ofBytes = [
  ...['content-length', 'content-encoding', 'content-md5', 'digest', 'content-digest'],
  ...['repr-digest', 'etag', 'accept-ranges', 'content-range'],
];

/** @param text `undefined` if the response has no body. */
export function responseOf(
  { status }: ProxyResponse,
  { headers, text, status: changed, made }: TransformedResponse,
): ProxyResponse {
  if (made) return madeResponse(made, status);
  const body = Buffer.from(text ?? '');
  const length = text === undefined ? [] : ['Content-Length', String(body.length)];
  return {
    status: changed ?? status,
    destinationStatus: status,
    headers: [...withoutHeaders(headers, ofBytes), ...length],
    body: Readable.from(body.length === 0 ? [] : [body], { objectMode: false }),
    trailers: () => [],
  };
}

export function withoutHeaders(headers: readonly string[], names: readonly string[]): string[] {
  const dropped = new Set(names.map((name) => name.toLowerCase()));
  return headers.filter((_, at) => !dropped.has(headers[at - (at % 2)]?.toLowerCase() ?? ''));
}

/** @param wanted in lower case. */
export function valuesOf(headers: readonly string[], wanted: string): string[] {
  return headers.filter((_, at) => at % 2 === 1 && headers[at - 1]?.toLowerCase() === wanted);
}
