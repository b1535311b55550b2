/**
 * The fast path for `path | filter`, which is nearly every expression: a closure made from liquidjs's
 * parse result, without its context and its generators. liquidjs evaluates everything else.
 */
import { Output, Tag, type Template, TypeGuards } from 'liquidjs';
import type { Json } from '../base/json.ts';
import { Bytes } from './evaluation/bytes.ts';
import type { Evaluate } from './evaluation/evaluation.ts';
import { textOf } from './evaluation/result.ts';
import { type AppliedFilter, filters } from './filters/filters.ts';
import { literalsOf } from './syntax-flaws.ts';

/** Names that have a special meaning in liquidjs. */
const computedMembers = new Set(['size', 'first', 'last']);

/** Evaluates an output that is a path with our filters. `undefined` for any other output. */
export function directOf(output: Output): Evaluate | undefined {
  const path = pathOf(output);
  const applied = filtersOf(output);
  if (path === undefined || applied === undefined) return undefined;
  return (scope, evaluation) => {
    let value: unknown = scope;
    for (const name of path) value = memberOf(value, name);
    for (const filter of applied) value = filter(value, evaluation);
    evaluation.budget.check();
    evaluation.budget.useFor(value);
    return value instanceof Bytes ? value.toString() : (value as Json | undefined);
  };
}

/** Evaluates a string without tags whose outputs are all direct. */
export function directTextOf(templates: readonly Template[]): Evaluate | undefined {
  const pieces: (string | Evaluate)[] = [];
  for (const template of templates) {
    const piece = template instanceof Output ? directPieceOf(template) : wordsOf(template);
    if (piece === undefined) return undefined;
    pieces.push(piece);
  }
  return (scope, evaluation) => {
    let text = '';
    for (const piece of pieces) {
      text += typeof piece === 'string' ? piece : textOf(piece(scope, evaluation));
    }
    return text;
  };
}

/** liquidjs evaluates an output that also trims the characters around it. */
function directPieceOf(output: Output): Evaluate | undefined {
  return output.token.trimLeft || output.token.trimRight ? undefined : directOf(output);
}

function wordsOf(template: Template): string | undefined {
  return template instanceof Tag ? undefined : template.token.getText();
}

function pathOf({ value }: Output): string[] | undefined {
  const [token, ...others] = value.initial.postfix;
  if (!TypeGuards.isPropertyAccessToken(token) || others.length > 0) return undefined;
  if (token.variable !== undefined) return undefined;
  const path: string[] = [];
  for (const name of token.props) {
    if (!TypeGuards.isWordToken(name) && !TypeGuards.isQuotedToken(name)) return undefined;
    if (computedMembers.has(name.content)) return undefined;
    path.push(name.content);
  }
  return path;
}

function filtersOf({ value }: Output): AppliedFilter[] | undefined {
  const applied: AppliedFilter[] = [];
  for (const { name, args } of value.filters) {
    const filter = filters.get(name);
    const given = literalsOf({ args });
    if (filter === undefined || given === undefined) return undefined;
    applied.push(filter.apply(given));
  }
  return applied;
}

function memberOf(value: unknown, name: string): unknown {
  if (value === null || value === undefined) return value;
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}
