/** Liquid's own filters that the language has, and what each may cost. */
import { type FilterImplOptions, filters as liquidFilters, toValue } from 'liquidjs';
import { type Budget, filterWork } from '../evaluation/budget.ts';
import { EvaluationContext } from '../evaluation/context.ts';
import { payForDate } from '../evaluation/dates.ts';
import { ExpressionError } from '../evaluation/error.ts';
import { isBeyondAscii } from '../evaluation/result.ts';
import { payForSearch, payForSplit, searchedText } from '../evaluation/search.ts';

/** Writing an entity in place of a character. */
const escapedWork = 32;

/** Comparing two members of a list that is sorted. */
const comparisonWork = 16;

/** Changing the case of a letter in a text with letters beyond ASCII. */
const beyondAsciiWork = 12;

/** Parsing a character of the name of a member, which liquidjs does in each call. */
const propertyWork = 400;

/** The longest name of a member, and the longest pattern of a date. */
const propertyLengthMax = 400;
const datePatternLengthMax = 200;

/** What a filter is given: the text or list piped into it, and its arguments. */
interface Given {
  readonly value: unknown;
  readonly given: readonly unknown[];
  readonly budget: Budget;
}

interface StandardFilter {
  /** How many times going through the whole input is charged. */
  readonly weight: number;
  /** What takes lists as they are; all others make a text or a number of what they are given. */
  readonly takes?: 'a list' | 'lists';
  /** Units of work for each of its members, in addition. */
  readonly memberWork?: number;
  /** The longest text the first argument may be, where the filter reads it once per member. */
  readonly firstArgumentMax?: number;
  /** How many of the arguments are numbers, of which liquidjs would read a text once per character. */
  readonly numbers?: number;
  /** What the filter costs in addition, where that depends on its input. */
  pay?(given: Given): void;
}

const plain: StandardFilter = { weight: 1 };
/** What is done to a text character by character. */
const spelled: StandardFilter = { weight: 10 };
/** What is written in place of a character costs more than the character. */
const escaping: StandardFilter = {
  ...spelled,
  pay: ({ value, budget }) => budget.use(countMarkup(searchedText(value)) * escapedWork),
};
/** V8 takes much longer for the case of letters where any of a text is beyond ASCII. */
const cased: StandardFilter = {
  weight: 2,
  pay: ({ value, budget }) => {
    const text = searchedText(value);
    if (isBeyondAscii(text)) budget.use(text.length * beyondAsciiWork);
  },
};
/** A list may be among the arguments as well. */
const ofLists: StandardFilter = { weight: 1, takes: 'lists' };
const ofList: StandardFilter = { weight: 1, takes: 'a list', memberWork: 8 };

/** Builds a context for each member. */
const perMember: StandardFilter = {
  weight: 2,
  takes: 'lists',
  memberWork: 1500,
  firstArgumentMax: propertyLengthMax,
  pay: ({ given: [property], budget }) => {
    budget.use(lengthOf(property) * propertyWork);
    // liquidjs reads it as an expression, in which a range may count for as long as it likes.
    if (!searchedText(property).includes('..')) return;
    throw new ExpressionError('the name of the member must not be a range');
  },
};

/** Compares each member with about as many others as the length of the list has bits. */
const sorting: StandardFilter = {
  weight: 1,
  takes: 'a list',
  memberWork: 200,
  firstArgumentMax: propertyLengthMax,
  pay: ({ value, budget }) => {
    if (!Array.isArray(value)) return;
    const comparisons = Math.ceil(Math.log2(value.length + 1));
    budget.use(value.length * comparisons * comparisonWork);
    budget.useFor(value, comparisons);
  },
};

const searching: StandardFilter = {
  weight: 1,
  pay: ({ value, given: [pattern], budget }) =>
    payForSearch(searchedText(value), searchedText(pattern), budget),
};

const splitting: StandardFilter = {
  weight: 1,
  pay: ({ value, given: [pattern, between], budget }) => {
    const texts = { text: searchedText(value), pattern: searchedText(pattern) };
    payForSplit({ ...texts, between: searchedText(between) }, budget);
  },
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
  base64_decode: spelled,
  base64_encode: spelled,
  capitalize: cased,
  ceil: plain,
  compact: ofList,
  concat: ofLists,
  date: {
    weight: 4,
    firstArgumentMax: datePatternLengthMax,
    pay: ({ given: [pattern, zone], budget }) => payForDate(pattern, zone, budget),
  },
  default: ofLists,
  divided_by: plain,
  downcase: cased,
  escape: escaping,
  escape_once: escaping,
  find: perMember,
  find_index: perMember,
  first: ofList,
  floor: plain,
  has: perMember,
  join: { weight: 3 },
  last: ofList,
  lstrip: spelled,
  map: { ...perMember, memberWork: 800 },
  minus: plain,
  modulo: plain,
  newline_to_br: spelled,
  plus: plain,
  prepend: plain,
  reject: perMember,
  remove: splitting,
  remove_first: searching,
  remove_last: searching,
  replace: splitting,
  replace_first: searching,
  replace_last: searching,
  reverse: ofList,
  round: plain,
  rstrip: spelled,
  size: ofList,
  slice: { weight: 8, takes: 'a list', numbers: 2 },
  sort: sorting,
  sort_natural: sorting,
  split: splitting,
  squish: spelled,
  strip: spelled,
  strip_html: spelled,
  strip_newlines: spelled,
  sum: { ...perMember, memberWork: 800 },
  times: plain,
  truncate: { ...spelled, numbers: 1 },
  truncatewords: spelled,
  uniq: { weight: 1, takes: 'a list', memberWork: 80 },
  upcase: cased,
  url_decode: spelled,
  url_encode: spelled,
  where: perMember,
};

/** The filters as liquidjs needs them; each is charged for before it runs. */
export const boundedFilters: ReadonlyMap<string, FilterImplOptions> = new Map(
  Object.entries(standardFilters).map(([name, row]) => [name, bounded(name, row)]),
);

function bounded(name: string, row: StandardFilter): FilterImplOptions {
  const { weight, takes, memberWork = 0, firstArgumentMax, numbers = 0 } = row;
  const standard = name === 'uniq' ? uniq : liquidFilters[name];
  if (typeof standard !== 'function') throw new Error(`liquidjs has no filter ${name}`);
  return function (value, ...given) {
    const { budget } = EvaluationContext.evaluationOf(this.context);
    budget.use(filterWork);
    if (takes === undefined) budget.useForText(toValue(value), weight);
    else budget.useFor(toValue(value), weight);
    if (Array.isArray(value)) budget.use(value.length * memberWork);
    for (const argument of given) {
      if (takes === 'lists') budget.useFor(argument);
      else budget.useForText(argument);
    }
    if (firstArgumentMax !== undefined && lengthOf(given[0]) > firstArgumentMax) {
      throw new ExpressionError(
        `${name} takes text of at most ${firstArgumentMax} characters as its argument`,
      );
    }
    row.pay?.({ value, given, budget });
    return standard.call(
      this,
      value,
      ...given.map((one, at) => (at < numbers ? numberOf(one) : one)),
    );
  };
}

/**
 * As liquidjs does it, but with numbers kept by their text: V8 hashes small integers without a seed, so
 * that a list could be made of which each member is compared with all before it.
 */
function uniq(value: unknown): unknown[] {
  const list: unknown = toValue(value);
  if (list === null || list === undefined) return [];
  if (!Array.isArray(list)) return [list];
  const seen = new Set<unknown>();
  return list.filter((member: unknown) => {
    const key = typeof member === 'string' || typeof member === 'number' ? keyOf(member) : member;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

function keyOf(member: string | number): string {
  return typeof member === 'string' ? `"${member}` : `#${member === 0 ? 0 : member}`;
}

function countMarkup(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    if ('&<>"\''.includes(text.charAt(at))) count += 1;
  }
  return count;
}

function numberOf(argument: unknown): unknown {
  const value: unknown = toValue(argument);
  return value === undefined ? undefined : Number(value);
}

/** The length of an argument once liquidjs has made it a text; a list or an object has no bound. */
function lengthOf(argument: unknown): number {
  const value: unknown = toValue(argument);
  if (typeof value === 'object' && value !== null) return Number.POSITIVE_INFINITY;
  return String(value).length;
}
