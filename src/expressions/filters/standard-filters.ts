/** The standard Liquid filters of the language, with their costs. */
import { type FilterImplOptions, filters as liquidFilters, toValue } from 'liquidjs';
import { argumentWork, type Budget, filterWork } from '../evaluation/budget.ts';
import { payForSide } from '../evaluation/comparing.ts';
import { EvaluationContext } from '../evaluation/context.ts';
import { payForDate } from '../evaluation/dates.ts';
import { ExpressionError } from '../evaluation/error.ts';
import { isBeyondAscii } from '../evaluation/result.ts';
import { payForSearch, payForSplit, searchedText } from '../evaluation/search.ts';
import { uniq } from './uniq.ts';

/** Replacing a character with an entity. */
const escapedWork = 32;

/** Comparing two members while a list is sorted. */
const comparisonWork = 16;

/** Changing the case of a letter in a string with non-ASCII letters. */
const beyondAsciiWork = 12;

/** Adding a character to the set to trim, percent-encoding a character, and creating a word. */
const trimmedWork = 350;
const encodedWork = 36;
const encodedBeyondAsciiWork = 60;
const wordWork = 40;

/** Parsing a character of a member's name, which liquidjs does in each call. */
const propertyWork = 400;

/** The most characters of a member's name, and of a date pattern. */
const propertyLengthMax = 400;
const datePatternLengthMax = 200;

/** The input of a filter: the string or list piped into it, and its arguments. */
interface FilterArguments {
  readonly value: unknown;
  readonly given: readonly unknown[];
  readonly budget: Budget;
}

interface StandardFilter {
  /** How many times a visit of the whole input is charged. */
  readonly weight: number;
  /** True for filters that take lists as they are. All others convert their input to a string or a number. */
  readonly takes?: 'a list' | 'lists';
  /** Units of work for each of its members, in addition. */
  readonly memberWork?: number;
  /** The most characters of the first argument, where the filter reads it once per member. */
  readonly firstArgumentMax?: number;
  /** How many arguments are numbers. liquidjs would parse a string in their place once per character. */
  readonly numbers?: number;
  /** The additional cost that depends on the input. */
  pay?(given: FilterArguments): void;
}

const plain: StandardFilter = { weight: 1 };
/** Filters that process a string character by character. */
const spelled: StandardFilter = { weight: 6 };
/** The replacement of a character costs more than the character. */
const escaping: StandardFilter = {
  ...spelled,
  pay: ({ value, budget }) => budget.use(countMarkup(searchedText(value)) * escapedWork),
};
/** V8 changes case much more slowly when a string contains a non-ASCII character. */
const cased: StandardFilter = {
  weight: 2,
  pay: ({ value, budget }) => {
    const text = searchedText(value);
    if (isBeyondAscii(text)) budget.use(text.length * beyondAsciiWork);
  },
};
/** Filters that inspect a value without visiting its members. */
const looking: StandardFilter = { weight: 0, takes: 'lists' };
/** Filters that return the same members in another order or number. */
const ofList: StandardFilter = { weight: 0, takes: 'a list', memberWork: 16 };
/** Each character at the ends is looked up in this set. */
const trimming: StandardFilter = {
  ...spelled,
  pay: ({ given: [characters], budget }) => {
    if (characters !== undefined) budget.use(lengthOf(characters) * trimmedWork);
  },
};

/** Creates a context for each member. */
const perMember: StandardFilter = {
  weight: 2,
  takes: 'lists',
  memberWork: 1500,
  firstArgumentMax: propertyLengthMax,
  pay: ({ value, given: [property, expected], budget }) => {
    budget.use(lengthOf(property) * propertyWork);
    // An expected list is compared with the property of each member.
    payForSide(toValue(expected), budget, membersOf(value));
    // liquidjs parses it as an expression, in which a range could iterate without a limit.
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
    // JavaScript converts a list to a string for each comparison.
    for (const member of value) budget.useForLists(member, 2 * comparisons);
  },
};

/** Also converts both strings to lower case for each comparison. */
const sortingNaturally: StandardFilter = {
  ...sorting,
  pay: (given) => {
    const { value, budget } = given;
    sorting.pay?.(given);
    if (!Array.isArray(value)) return;
    const comparisons = Math.ceil(Math.log2(value.length + 1));
    const weight = value.some((member) => isBeyondAscii(searchedText(member)));
    budget.useFor(value, 2 * comparisons * (weight ? beyondAsciiWork : 1));
  },
};

/** Adds numbers. JavaScript converts lists among them to strings. */
const adding: StandardFilter = {
  ...perMember,
  memberWork: 800,
  pay: ({ value, budget }) => budget.useForLists(value, 1),
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
 * Every filter of Shopify's Liquid that is meaningful without a shop. Filters that take an expression
 * as a string (such as `where_exp`) would run data as code, and `sample` is not cryptographically random.
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
  concat: { ...ofList, takes: 'lists' },
  date: {
    weight: 4,
    firstArgumentMax: datePatternLengthMax,
    pay: ({ given: [pattern, zone], budget }) => payForDate(pattern, zone, budget),
  },
  default: looking,
  divided_by: plain,
  downcase: cased,
  escape: escaping,
  escape_once: { ...escaping, weight: 20 },
  find: perMember,
  find_index: perMember,
  first: looking,
  floor: plain,
  has: perMember,
  join: { weight: 3 },
  last: looking,
  lstrip: trimming,
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
  rstrip: trimming,
  size: looking,
  slice: { weight: 8, takes: 'a list', numbers: 2 },
  sort: sorting,
  sort_natural: sortingNaturally,
  split: splitting,
  squish: spelled,
  strip: trimming,
  strip_html: spelled,
  strip_newlines: spelled,
  sum: adding,
  times: plain,
  truncate: { ...spelled, numbers: 1 },
  truncatewords: counting(/\s+/g, wordWork),
  uniq: { weight: 1, takes: 'a list', memberWork: 260 },
  upcase: cased,
  url_decode: spelled,
  url_encode: counting(/[^\w.~-]/g, encodedWork, encodedBeyondAsciiWork),
  where: perMember,
};

/** The filters in liquidjs's form. Each is charged before it runs. */
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
    else if (weight > 0) budget.useFor(toValue(value), weight);
    budget.use(membersOf(value) * memberWork);
    for (const argument of given) {
      budget.use(argumentWork);
      if (takes === 'lists') budget.use(membersOf(argument) * memberWork);
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

/** The number of members that liquidjs processes: a value that is not a list counts as a list of itself. */
function membersOf(given: unknown): number {
  const value: unknown = toValue(given);
  return Array.isArray(value) ? value.length : 1;
}

/** The cost per character, with an additional cost per match. */
function counting(pattern: RegExp, work: number, beyondAsciiWork = work): StandardFilter {
  return {
    ...spelled,
    pay: ({ value, budget }) => {
      const text = searchedText(value);
      const each = isBeyondAscii(text) ? beyondAsciiWork : work;
      for (const _match of text.matchAll(pattern)) budget.use(each);
    },
  };
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

/** The length of an argument after liquidjs has converted it to a string. A list or an object has no bound. */
function lengthOf(argument: unknown): number {
  const value: unknown = toValue(argument);
  if (typeof value === 'object' && value !== null) return Number.POSITIVE_INFINITY;
  return String(value).length;
}
