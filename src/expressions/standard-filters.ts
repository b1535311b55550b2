/** Liquid's own filters that the language has, and what each may cost. */
import { type FilterImplOptions, filters as liquidFilters, toValue } from 'liquidjs';
import { EvaluationContext } from './context.ts';
import { ExpressionError } from './error.ts';

/** The longest name of a member, and the longest pattern of a date. */
export const propertyLengthMax = 400;
export const datePatternLengthMax = 200;

interface StandardFilter {
  /** Times that going through the whole input is paid. */
  readonly weight: number;
  /** Units of work for each of its members beside that. */
  readonly memberWork?: number;
  /** The longest text the first argument may be, where the filter reads it once per member. */
  readonly firstArgumentMax?: number;
}

const plain: StandardFilter = { weight: 1 };
/** Sorting reads each member some twenty times; the rest builds a context for each member. */
const perMember: StandardFilter = {
  weight: 4,
  memberWork: 128,
  firstArgumentMax: propertyLengthMax,
};

/**
 * Every filter of Shopify's Liquid that has a meaning without a shop. Those that take an expression
 * as text (`where_exp` and its like) would run data as code, and `sample` is not cryptographic.
 */
const standardFilters: Readonly<Record<string, StandardFilter>> = {
  abs: plain,
  append: plain,
  at_least: plain,
  at_most: plain,
  base64_decode: plain,
  base64_encode: plain,
  capitalize: plain,
  ceil: plain,
  compact: plain,
  concat: plain,
  date: { weight: 1, firstArgumentMax: datePatternLengthMax },
  default: plain,
  divided_by: plain,
  downcase: plain,
  escape: plain,
  escape_once: plain,
  find: perMember,
  find_index: perMember,
  first: plain,
  floor: plain,
  has: perMember,
  join: plain,
  last: plain,
  lstrip: plain,
  map: perMember,
  minus: plain,
  modulo: plain,
  newline_to_br: plain,
  plus: plain,
  prepend: plain,
  reject: perMember,
  remove: plain,
  remove_first: plain,
  remove_last: plain,
  replace: plain,
  replace_first: plain,
  replace_last: plain,
  reverse: plain,
  round: plain,
  rstrip: plain,
  size: plain,
  slice: plain,
  sort: perMember,
  sort_natural: perMember,
  split: plain,
  squish: plain,
  strip: plain,
  strip_html: plain,
  strip_newlines: plain,
  sum: perMember,
  times: plain,
  truncate: plain,
  truncatewords: plain,
  uniq: plain,
  upcase: plain,
  url_decode: plain,
  url_encode: plain,
  where: perMember,
};

/** The filters as liquidjs wants them, each paying before it works. */
export const boundedFilters: ReadonlyMap<string, FilterImplOptions> = new Map(
  Object.entries(standardFilters).map(([name, row]) => [name, bounded(name, row)]),
);

function bounded(name: string, row: StandardFilter): FilterImplOptions {
  const { weight, memberWork = 0, firstArgumentMax } = row;
  const standard = liquidFilters[name];
  if (typeof standard !== 'function') throw new Error(`liquidjs has no filter ${name}`);
  return function (value, ...given) {
    const { budget } = EvaluationContext.evaluationOf(this.context);
    budget.useFor(value, weight);
    if (Array.isArray(value)) budget.use(value.length * memberWork);
    for (const argument of given) budget.useFor(argument);
    if (firstArgumentMax !== undefined && lengthOf(given[0]) > firstArgumentMax) {
      throw new ExpressionError(
        `${name} takes text of at most ${firstArgumentMax} characters as its argument`,
      );
    }
    return standard.call(this, value, ...given);
  };
}

/** The length of an argument once liquidjs has made it a text; a list or an object has no bound. */
function lengthOf(argument: unknown): number {
  const value: unknown = toValue(argument);
  if (typeof value === 'object' && value !== null) return Number.POSITIVE_INFINITY;
  return String(value).length;
}
