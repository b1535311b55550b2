/** The strings of a call that contain expressions: parsed once, and written with values. */
import { isUtf8 } from 'node:buffer';
import { createPause } from '../../base/pauses.ts';
import { ExpressionError } from '../../expressions/evaluation/error.ts';
import {
  type CompiledText,
  evaluateFitting,
  readText,
} from '../../expressions/request-parts/compile.ts';
import { expressionsMax } from '../../expressions/request-parts/expressions.ts';
import { hasExpressions, type TextForm } from '../../expressions/request-parts/forms.ts';
import type { RequestScope } from '../../expressions/request-parts/scope.ts';
import { isOfServer } from '../../rules/caller.ts';
import { invalidCall } from './called-proxy.ts';
import { checkSegments } from './destination.ts';
import type { CallTexts, ProxyCall, Writable } from './proxy-call.ts';

/**
 * The maximum number of expressions in all parts of a call together, if the call has no key or one that browsers can
 * read. The vault compiles expressions before it knows whether they can be evaluated.
 */
export const publicExpressionsMax = 500;

/** A string with its part of the call. */
interface PlacedText {
  readonly part: string;
  readonly text: CompiledText;
  readonly put: (writable: Writable, written: string) => Writable;
}

/**
 * `undefined` if no part of a call contains an expression.
 * @throws VaultError `invalid_proxy_request` naming the part with an invalid expression.
 */
export async function readCallTexts(call: ProxyCall): Promise<CallTexts | undefined> {
  const { path, query = '', headers, body } = call;
  const read = createReader(isOfServer(call.caller) ? expressionsMax : publicExpressionsMax);
  const bodyText = textOf(call);
  if (bodyText !== undefined && body.form && hasExpressions(bodyText)) {
    requireUtf8(call);
    await read('body', { text: bodyText, form: body.form }, withBody);
  }
  if (hasExpressions(path)) await read('path', { text: path, form: 'path' }, withPath);
  if (hasExpressions(query)) await read('query', { text: query, form: 'query' }, withQuery);
  for (let at = 1; at < headers.length; at += 2) {
    const text = headers[at] ?? '';
    if (!text.includes('{{')) continue;
    await read(`header ${headers[at - 1]}`, { text, form: 'header' }, withHeader(at));
  }
  const { placed } = read;
  if (placed.length === 0) return undefined;
  return {
    references: placed.flatMap(({ text }) => text.references),
    write: (scope, evaluation) => {
      let written: Writable = call;
      let seen: RequestScope | undefined;
      for (const { part, text, put } of placed) {
        // The body comes first, if it contains expressions.
        if (part !== 'body') seen ??= withRequestBody(scope, textOf(written));
        const requireFit = part === 'path' ? checkSegments : undefined;
        const value = at(part, () =>
          evaluateFitting(text, seen ?? scope, { evaluation, requireFit }),
        );
        written = put(written, value);
      }
      return written;
    },
  };
}

type PutText = PlacedText['put'];

/** @param max for the expressions of each part or, if it is less than the limit of a part, of all parts together. */
function createReader(max: number) {
  const isOfAll = max < expressionsMax;
  let before = 0;
  const placed: PlacedText[] = [];
  const pause = createPause();
  const read = async (part: string, given: { text: string; form: TextForm }, put: PutText) => {
    const { text, uncompiled } = at(part, () => {
      const reading = readText(given.text, given.form, { before, max });
      if (isOfAll) before = reading.text.expressionCount;
      return reading;
    });
    for (const compile of uncompiled) {
      await pause();
      at(part, compile);
    }
    placed.push({ part, text, put });
  };
  return Object.assign(read, { placed });
}

const withPath: PutText = (writable, path) => ({ ...writable, path });
const withQuery: PutText = (writable, query) => ({ ...writable, query });
const withHeader =
  (at: number): PutText =>
  (writable, value) => ({ ...writable, headers: writable.headers.with(at, value) });
const withBody: PutText = (writable, text) => ({
  ...writable,
  body: { ...writable.body, content: Buffer.from(text) },
});

/** Only for a body that was read completely. */
export function textOf({ body: { content, form } }: Pick<ProxyCall, 'body'>): string | undefined {
  if (form === undefined || !(content instanceof Uint8Array)) return undefined;
  return Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('utf8');
}

function withRequestBody(scope: RequestScope, body: string | undefined): RequestScope {
  if (scope.request === undefined || body === undefined) return scope;
  return { ...scope, request: { ...scope.request, body } };
}

/** Values are written as UTF-8, and bytes that are not UTF-8 would be replaced. */
export function requireUtf8({ body, headers }: ProxyCall): void {
  const type = headers.findIndex((name, at) => at % 2 === 0 && /^content-type$/i.test(name));
  const [, charset = 'utf-8'] = /charset="?([^";\s]+)/i.exec(headers[type + 1] ?? '') ?? [];
  const isText = body.content instanceof Uint8Array && isUtf8(body.content);
  if (isText && /^(?:utf-?8|us-ascii)$/i.test(charset)) return;
  throw invalidCall('body', 'must be UTF-8 to hold expressions or placeholders');
}

/** @throws VaultError naming the part, in place of an error of its expressions. */
export function at<T>(part: string, evaluate: () => T): T {
  try {
    return evaluate();
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    const place = error.path ? ` (${error.path})` : '';
    throw invalidCall(part, `has an expression that fails: ${error.public}${place}`);
  }
}
