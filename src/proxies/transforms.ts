/** Transforms of a proxy: checked in requests, and parsed for calls. */

import type { Json } from '../base/json.ts';
import { createValidationErrors, type ValidationErrors } from '../base/validation-errors.ts';
import { compileValue } from '../expressions/request-parts/compile.ts';
import {
  parseRequestTransforms,
  parseResponseTransforms,
  type RequestTransform,
  type ResponseTransform,
} from './transforms/definitions.ts';

export type TransformSide = 'request' | 'response';

/** Returns the list unchanged; problems are added to the errors. */
export function checkTransforms(
  given: readonly Json[],
  { side, errors }: { readonly side: TransformSide; readonly errors: ValidationErrors },
): readonly Json[] {
  const path = `${side}_transforms`;
  const parse = side === 'request' ? parseRequestTransforms : parseResponseTransforms;
  const parsed: readonly ResponseTransform[] = parse(given as Json, errors, path);
  if (parsed.length < given.length) return given;
  for (const [index, transform] of parsed.entries()) {
    if (refersToTokens(transform)) {
      errors.add(`${path}[${index}].options`, 'must not refer to tokens by their ids');
    }
  }
  return given;
}

/**
 * The output of a transform may return to the caller, or become a token that the caller can read. It must not contain
 * data that the caller could not read directly.
 */
function refersToTokens(transform: ResponseTransform): boolean {
  if (transform.type === 'mask' || transform.type === 'code') return false;
  if (transform.type !== 'tokenize') return compileValue(transform.value).references.length > 0;
  const { mask, fingerprint_expression, search_indexes, ...evaluated } = transform.token;
  return compileValue(evaluated).references.length > 0;
}

/** Whether a transform may read a variable. Expressions always spell out its name. */
export function names(transform: ResponseTransform, variable: 'proxy' | 'res'): boolean {
  if (transform.type === 'mask' || transform.type === 'code') return false;
  const text = transform.type === 'tokenize' ? JSON.stringify(transform.token) : transform.value;
  return new RegExp(`\\b${variable}\\b`).test(text);
}

interface Transforms {
  readonly request: readonly RequestTransform[];
  readonly response: readonly ResponseTransform[];
}

interface StoredTransforms {
  readonly requestTransforms: readonly Json[];
  readonly responseTransforms: readonly Json[];
}

/** Lives as long as the cached proxy, so that patterns are compiled once. */
const remembered = new WeakMap<readonly Json[], Transforms>();

export function transformsOf({
  requestTransforms,
  responseTransforms,
}: StoredTransforms): Transforms {
  const known = remembered.get(responseTransforms);
  if (known) return known;
  const errors = createValidationErrors();
  const transforms = {
    request: parseRequestTransforms(requestTransforms as Json, errors),
    response: parseResponseTransforms(responseTransforms as Json, errors),
  };
  errors.settle();
  remembered.set(responseTransforms, transforms);
  return transforms;
}
