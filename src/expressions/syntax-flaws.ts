/** What liquidjs reads past in silence, found with its place. A mask must not say less than it shows. */
import {
  type FilteredValueToken,
  Hash,
  type TagToken,
  Tokenizer,
  TypeGuards,
  toValue,
} from 'liquidjs';
import { engine } from './engine.ts';
import { ExpressionError } from './evaluation/error.ts';
import { filters } from './filters/filters.ts';
import { rangeMax } from './tags.ts';

export interface SyntaxFlaw {
  /** Index into the text. */
  readonly at: number;
  readonly expected: string;
}

/** An operand or operator of a value, in the order in which they are evaluated. */
export type ValueToken = FilteredValueToken['initial']['postfix'][number];
type FilterToken = FilteredValueToken['filters'][number];

const endOfValue = 'expected "|" and a filter, or the end';

/**
 * Reads `{{ data.x, reveal_last: 4 }}`, which clients of the public product send, as a pipe. The
 * engine would take the comma for the end and give the value unmasked.
 */
export function withPipes(text: string): string {
  if (!text.includes(',')) return text;
  let piped = text;
  const reader = readerOf(text);
  for (const token of topLevelTokens(text)) {
    if (!TypeGuards.isOutputToken(token)) continue;
    const tokenizer = within(reader, token.contentRange);
    if (tokenizer.readFilteredValue().filters.length > 0) continue;
    const at = tokenizer.p;
    const name = /^,\s*(\w+)/.exec(text.slice(at, token.contentRange[1]))?.[1];
    if (name === undefined || !(name in engine.filters)) continue;
    piped = `${piped.slice(0, at)}|${piped.slice(at + 1)}`;
  }
  return piped;
}

/** The first thing in a text that liquidjs accepts and does not mean. */
export function flawOfText(text: string): SyntaxFlaw | undefined {
  let inComment = false;
  const reader = readerOf(text);
  for (const token of topLevelTokens(text)) {
    if (TypeGuards.isTagToken(token)) {
      inComment = token.name === 'comment' || (inComment && token.name !== 'endcomment');
    }
    const flaw = inComment ? undefined : flawOfToken(reader, token);
    if (flaw !== undefined) return flaw;
  }
  return undefined;
}

function topLevelTokens(text: string) {
  return readerOf(text).readTopLevelTokens(engine.options);
}

/** One for all outputs of a text: making it takes longer than reading a short output. */
function readerOf(text: string): Tokenizer {
  return new Tokenizer(text, engine.options.operators);
}

function within(reader: Tokenizer, [begin, end]: [number, number]): Tokenizer {
  reader.p = begin;
  reader.N = end;
  return reader;
}

function flawOfToken(
  reader: Tokenizer,
  token: ReturnType<typeof topLevelTokens>[number],
): SyntaxFlaw | undefined {
  if (TypeGuards.isTagToken(token)) return flawsByTag[token.name]?.(token);
  return TypeGuards.isOutputToken(token)
    ? flawOfValue(within(reader, token.contentRange))
    : undefined;
}

/** How the words after a tag's name are judged; a tag without a row has none. */
const flawsByTag: Readonly<Record<string, (token: TagToken) => SyntaxFlaw | undefined>> = {
  if: ({ tokenizer }) => flawOfValue(tokenizer),
  elsif: ({ tokenizer }) => flawOfValue(tokenizer),
  unless: ({ tokenizer }) => flawOfValue(tokenizer),
  case: ({ tokenizer }) => flawOfValue(tokenizer),
  assign: ({ tokenizer }) => {
    tokenizer.readIdentifier();
    tokenizer.readTo('=');
    return flawOfValue(tokenizer);
  },
  when: ({ tokenizer }) => {
    const values: ValueToken[] = [];
    // Values are parted by commas or by `or`, as in liquidjs's own reading.
    while (!tokenizer.end()) {
      values.push(tokenizer.readValueOrThrow());
      tokenizer.skipBlank();
      tokenizer.readTo(tokenizer.peek() === ',' ? ',' : 'or');
    }
    return flawOfRanges(values);
  },
  for: ({ tokenizer }) => {
    tokenizer.readIdentifier();
    tokenizer.readIdentifier();
    const collection = tokenizer.readValue();
    const inner = TypeGuards.isRangeToken(collection)
      ? [collection.lhs, collection.rhs]
      : [collection];
    return flawOfRanges([...inner, ...Object.values(new Hash(tokenizer).hash)]);
  },
};

function flawOfValue(tokenizer: Tokenizer): SyntaxFlaw | undefined {
  const begin = tokenizer.p;
  const value = tokenizer.readFilteredValue();
  tokenizer.skipBlank();
  if (!tokenizer.end()) return { at: tokenizer.p, expected: endOfValue };
  const operands = operandsOf(value);
  return (
    flawOfOperators(value) ??
    flawOfRanges(operands) ??
    flawOfPunctuation(tokenizer.input, [begin, tokenizer.N], leavesOf(value)) ??
    first(value.filters, flawOfFilter)
  );
}

/** Every value of the expression: what is compared, and what the filters are given. */
function operandsOf(value: FilteredValueToken): (ValueToken | undefined)[] {
  const given = value.filters.flatMap((filter) => filter.args);
  return [
    ...value.initial.postfix.filter((token) => !TypeGuards.isOperatorToken(token)),
    ...given.map((argument) => (Array.isArray(argument) ? argument[1] : argument)),
  ];
}

/** Two values side by side are one too many: the engine would give the first. */
function flawOfOperators({ initial, begin }: FilteredValueToken): SyntaxFlaw | undefined {
  let values = 0;
  for (const token of initial.postfix) {
    if (!TypeGuards.isOperatorToken(token)) values += 1;
    else if (token.operator !== 'not') values -= 1;
    if (values < 1) return { at: token.begin, expected: 'expected a value on both sides' };
  }
  return values === 1
    ? undefined
    : { at: begin, expected: 'expected one value before the filters' };
}

/** Outside `for`, which checks what it counts, the ends of a range must be numbers written out. */
function flawOfRanges(tokens: readonly (ValueToken | undefined)[]): SyntaxFlaw | undefined {
  for (const token of tokens) {
    if (TypeGuards.isPropertyAccessToken(token)) {
      const flaw = flawOfRanges([token.variable, ...token.props]);
      if (flaw !== undefined) return flaw;
    }
    if (!TypeGuards.isRangeToken(token)) continue;
    const [least, most] = [wholeNumber(token.lhs), wholeNumber(token.rhs)];
    if (least === undefined || most === undefined || most - least >= rangeMax) {
      const expected = `expected a range between whole numbers, of at most ${rangeMax}`;
      return { at: token.begin, expected };
    }
  }
  return undefined;
}

function wholeNumber(token: ValueToken): number | undefined {
  if (!TypeGuards.isNumberToken(token)) return undefined;
  const number = Number(token.getText());
  return Number.isSafeInteger(number) ? number : undefined;
}

type TextRange = readonly [begin: number, end: number];

/** The places of all names, operators and literals: what remains between them is punctuation. */
function leavesOf(value: FilteredValueToken): TextRange[] {
  const leaves = value.initial.postfix
    .filter((token) => TypeGuards.isOperatorToken(token))
    .map(rangeOf);
  for (const operand of operandsOf(value)) addLeaves(leaves, operand);
  for (const filter of value.filters) leaves.push(...leavesOfFilter(filter));
  return leaves;
}

/** Into one list, because lists within lists would be copied once for each level of brackets. */
function addLeaves(leaves: TextRange[], token: ValueToken | undefined): void {
  if (token === undefined) return;
  if (TypeGuards.isPropertyAccessToken(token)) {
    addLeaves(leaves, token.variable);
    for (const step of token.props) addLeaves(leaves, step);
  } else if (TypeGuards.isRangeToken(token)) {
    addLeaves(leaves, token.lhs);
    leaves.push([token.lhs.end, token.rhs.begin]);
    addLeaves(leaves, token.rhs);
  } else {
    leaves.push(rangeOf(token));
  }
}

function leavesOfFilter(filter: FilterToken): TextRange[] {
  const places: TextRange[] = [[filter.begin, filter.begin + filter.name.length]];
  for (const argument of filter.args) {
    if (!Array.isArray(argument)) continue;
    const [name = '', value] = argument;
    const begin = filter.input.lastIndexOf(name, (value?.begin ?? filter.end) - name.length);
    places.push([begin, begin + name.length]);
  }
  return places;
}

function rangeOf({ begin, end }: ValueToken): TextRange {
  return [begin, end];
}

const strayPattern = /[^\s.:,|()[\]]/;
const danglingPattern = /[.:,|(]\s*(?=[.:,|)\]]|$)|\[\s*\]/;

function flawOfPunctuation(
  text: string,
  [begin, end]: TextRange,
  leaves: TextRange[],
): SyntaxFlaw | undefined {
  const marks = text.slice(begin, end).split('');
  for (const [from, to] of leaves) marks.fill('_', from - begin, to - begin);
  const outline = marks.join('');
  const stray = outline.replaceAll('_', ' ').search(strayPattern);
  if (stray >= 0) return { at: begin + stray, expected: endOfValue };
  const dangling = outline.search(danglingPattern);
  if (dangling < 0) return undefined;
  return { at: begin + dangling + 1, expected: 'expected a name or a value' };
}

/** Our own filters say beforehand which arguments they take; a value that varies is judged later. */
function flawOfFilter(token: FilterToken): SyntaxFlaw | undefined {
  const filter = filters.get(token.name);
  if (filter === undefined) return undefined;
  const given = literalsOf(token);
  const named = token.args.some(Array.isArray);
  if (named || token.args.length > filter.argumentsMax) {
    const expected = `expected at most ${filter.argumentsMax} arguments without names`;
    return { at: token.begin, expected };
  }
  if (given === undefined) return undefined;
  try {
    filter.apply(given);
    return undefined;
  } catch (error) {
    if (error instanceof ExpressionError) return { at: token.begin, expected: error.public };
    throw error;
  }
}

/** The arguments of a filter when all are written out, else `undefined`. */
export function literalsOf({ args }: Pick<FilterToken, 'args'>): unknown[] | undefined {
  const literals: unknown[] = [];
  for (const argument of args) {
    if (Array.isArray(argument) || !('content' in argument)) return undefined;
    literals.push(toValue(argument.content));
  }
  return literals;
}

function first<T, R>(items: readonly T[], find: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
