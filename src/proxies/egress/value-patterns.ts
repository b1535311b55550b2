/**
 * What a value looks like on the way. Each character may be as it is, or escaped as JSON, URLs, HTML and programming
 * languages escape it, also several times over. Texts are strings of single bytes.
 */
import assert from 'node:assert/strict';

/** A shorter value, such as a card code, is in many texts by chance, and its absence would show it. */
const charactersMin = 6;
/** A longer value is looked for in pieces, of which each may be cut off from the others. */
const pieceLength = 96;

/** Others may be in its place. */
interface Character {
  /** Ascending. */
  readonly points: readonly number[];
  /** So many in a row, of one that escapes. Each may be escaped several times over. */
  readonly times: number;
  /** Equal for what is read alike. */
  readonly name: string;
}

interface ValuePattern {
  /** What it is a way to write of. */
  readonly piece: string;
  readonly characters: readonly Character[];
  /** What may be between two characters, such as a line break in base64. */
  readonly gaps: Gaps;
}

interface Gaps {
  readonly between: Character;
  readonly max: number;
}

/** The patterns that begin alike are followed as one, so that no place of a text takes longer for many of them. */
interface PatternNode {
  readonly next: Map<string, PatternStep>;
  /** Those that end here. */
  readonly pieces: Set<string>;
}

interface PatternStep {
  readonly character: Character;
  readonly node: PatternNode;
}

export interface ValuePatterns {
  readonly firsts: Uint8Array;
  /** The first two bytes, unless the first escapes. */
  readonly pairs: ReadonlySet<number>;
  readonly roots: ReadonlyMap<Gaps, PatternRoot>;
}

interface PatternRoot {
  readonly node: PatternNode;
  readonly byFirst: Map<number, Set<PatternStep>>;
}

/**
 * Values that are too short have none, and neither has what its program knows: overwriting a guess of the program,
 * which its destination gives back, would say that the guess is right.
 */
export async function patternsOf(
  values: Iterable<string>,
  { known = '', pay }: { readonly known?: string; readonly pay: Pay },
): Promise<ValuePatterns> {
  const meter = createMeter(pay);
  const pieces = new Set(Array.from(values, piecesOf).flat());
  const folds = new Set(Array.from(pieces, foldedText));
  const all = indexed([...pieces].flatMap(encodingsOf));
  // Numbers are as they were.
  const allFolded = folds.isSubsetOf(pieces) ? all : indexed([...folds].flatMap(encodingsOf));
  const asSent = await piecesIn({ patterns: all, text: known, meter });
  const folded = await piecesIn({ patterns: allFolded, text: foldedBytes(known), meter });
  await meter.pay();
  const unknown = [...pieces].filter(
    (piece) => !asSent.has(piece) && !folded.has(foldedText(piece)),
  );
  return unknown.length === pieces.size ? all : indexed(unknown.flatMap(encodingsOf));
}

/** Destinations change what they give back: upper case to lower case, and digits of full width. */
function foldedText(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}

function foldedBytes(bytes: string): string {
  const text = foldedText(Buffer.from(bytes, 'latin1').toString('utf8'));
  return Buffer.from(text, 'utf8').toString('latin1');
}

async function piecesIn(search: ValueSearch): Promise<ReadonlySet<string>> {
  const { text, meter } = search;
  const found = new Set<string>();
  const { length } = text;
  for (let at = nextBegin(search, 0, length); at < length; at = nextBegin(search, at + 1, length)) {
    if (meter.isDue) await meter.pay();
    const matching = eachMatch(search, at, (piece) => found.add(piece));
    if (matching) await matching;
  }
  return found;
}

function piecesOf(value: string): readonly string[] {
  return linesOf(value.toWellFormed()).flatMap((line) => {
    const points = Array.from(line);
    if (points.length < charactersMin) return [];
    // A short rest belongs to what comes before it.
    const count = Math.max(1, Math.floor(points.length / pieceLength));
    return Array.from({ length: count }, (_, at) => {
      const end = at + 1 === count ? undefined : (at + 1) * pieceLength;
      return points.slice(at * pieceLength, end).join('');
    });
  });
}

/** Streams pass line by line. A short line belongs to the one before it. Destinations trim. */
function linesOf(value: string): readonly string[] {
  const lines: string[] = [];
  for (const line of value.trim().split(/\r?\n/)) {
    const before = lines.at(-1);
    if (before === undefined || Math.min(before.length, line.length) >= charactersMin)
      lines.push(line);
    else lines.push(`${lines.pop()}\n${line}`);
  }
  return lines;
}

const noGap: Gaps = { between: characterOf([]), max: 0 };
/** As card numbers and account numbers are printed. */
const betweenDigits: Gaps = {
  between: characterOf(Array.from(" -.+,'/_\u00a0\u2009\u202f", pointOf)),
  max: 1,
};
/** RFC 2045, section 6.8. */
const betweenLines: Gaps = { between: characterOf([10, 13, 32]), max: 3 };

function encodingsOf(value: string): readonly ValuePattern[] {
  const bytes = Buffer.from(value, 'utf8');
  const digits = value.replaceAll(/[ .-]/g, '');
  const isNumber = /^\d{9,}$/.test(digits);
  const isLatin = /^[\0-\xff]*[\x80-\xff][\0-\xff]*$/.test(value);
  const written = (text: string, characterFor: (one: string) => Character, gaps = noGap) => ({
    piece: value,
    characters: charactersOf(text, characterFor),
    gaps,
  });
  return [
    written(value, plainCharacter),
    ...(isNumber ? [written(digits, plainCharacter, betweenDigits)] : []),
    ...(isLatin ? [written(value, latinCharacter)] : []),
    written(bytes.toString('hex'), hexCharacter),
    ...base64Of(bytes).map((text) => written(text, base64Character, betweenLines)),
  ];
}

function charactersOf(text: string, characterFor: (one: string) => Character): Character[] {
  const characters: Character[] = [];
  for (const one of text) {
    const character = characterFor(one);
    const before = characters.at(-1);
    const [point = 0] = character.points;
    if (escapes.includes(point) && before?.points[0] === point) {
      characters[characters.length - 1] = characterOf(character.points, before.times + 1);
    } else characters.push(character);
  }
  return characters;
}

function characterOf(points: readonly number[], times = 1): Character {
  const ascending = points.toSorted((a, b) => a - b);
  return { points: ascending, times, name: `${times} ${ascending}` };
}

/** Characters of ASCII are made once, because they are few. */
function characterMaker(pointsOf: (one: string) => readonly number[]): (one: string) => Character {
  const made = new Map<string, Character>();
  return (one) => {
    const before = made.get(one);
    if (before) return before;
    const character = characterOf(pointsOf(one));
    if (pointOf(one) < 0x80) made.set(one, character);
    return character;
  };
}

function pointOf(character: string): number {
  return character.codePointAt(0) ?? 0;
}

/** Destinations change the case of e-mail addresses and of keys. */
const plainCharacter = characterMaker((one) => {
  if (one === ' ') return [32, 43];
  const cases = [one, one.toLowerCase(), one.toUpperCase()].filter(
    (other) => Array.from(other).length === 1,
  );
  return [...new Set(cases.map(pointOf))];
});

/** A byte that is no character of UTF-8, as headers have them. */
const byteBase = 0x11_00_00;

const latinCharacter = characterMaker((one) => {
  const point = pointOf(one);
  return [point < 0x80 ? point : byteBase + point];
});

const hexCharacter = characterMaker((one) => [...new Set([one, one.toUpperCase()].map(pointOf))]);

const base64Character = characterMaker((one) => {
  if (one === '+') return [43, 45];
  return one === '/' ? [47, 95] : [pointOf(one)];
});

/** Within longer data a value begins at any of three places, and the characters at its ends hold parts of others. */
function base64Of(bytes: Buffer): readonly string[] {
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    const begin = Math.ceil((before * 8) / 6);
    return text.slice(begin, Math.floor(((before + bytes.length) * 8) / 6));
  });
}

const [backslash, percent, ampersand] = [92, 37, 38] as const;
const anyByte = Array.from({ length: 256 }, (_, code) => code);
const escapes: readonly number[] = [backslash, percent, ampersand];

function indexed(patterns: readonly ValuePattern[]): ValuePatterns {
  const firsts = new Uint8Array(256);
  const pairs = new Set<number>();
  const roots = new Map<Gaps, PatternRoot>();
  for (const pattern of patterns) {
    const { characters, gaps } = pattern;
    const [one, two] = characters;
    if (one === undefined) continue;
    const root = roots.get(gaps) ?? { node: newNode(), byFirst: new Map() };
    roots.set(gaps, root);
    const step = addPattern(root.node, pattern);
    const seconds = new Set([
      ...[...(two?.points ?? []), ...gaps.between.points].map(firstByteOf),
      ...escapes,
      0,
    ]);
    for (const first of new Set(one.points.map(firstByteOf))) {
      firsts[first] = 1;
      const steps = root.byFirst.get(first) ?? new Set();
      root.byFirst.set(first, steps.add(step));
      // Of a character of several bytes, the second is its own.
      for (const next of first < 0x80 ? seconds : anyByte) pairs.add(first * 256 + next);
    }
  }
  if (patterns.length > 0) for (const code of escapes) firsts[code] = 1;
  return { firsts, pairs, roots };
}

function newNode(): PatternNode {
  return { next: new Map(), pieces: new Set() };
}

/** @returns its first step. */
function addPattern(root: PatternNode, { characters, piece }: ValuePattern): PatternStep {
  const steps: PatternStep[] = [];
  let node = root;
  for (const character of characters) {
    const step = node.next.get(character.name) ?? { character, node: newNode() };
    node.next.set(character.name, step);
    steps.push(step);
    node = step.node;
  }
  node.pieces.add(piece);
  const [first] = steps;
  assert(first, 'a pattern has characters');
  return first;
}

function bytesOf(point: number): readonly number[] {
  if (point >= byteBase) return [point - byteBase];
  return point < 0x80 ? [point] : [...Buffer.from(String.fromCodePoint(point), 'utf8')];
}

function firstByteOf(point: number): number {
  return point < 0x80 ? point : (bytesOf(point)[0] ?? 0);
}

/** After so many steps others have their turn, within a millisecond or two. */
const partSteps = 16_384;
/** A row of characters that escape takes as long as so many others. */
const stepsOfRun = 64;

/** Charges so many milliseconds, and waits for the next turn. */
export type Pay = (ms: number) => Promise<void>;

/** Counts the steps of a search, between whose parts others have their turns. */
export interface Meter {
  steps: number;
  readonly isDue: boolean;
  /** For what was done since it was created, or since the last time. */
  pay(): Promise<void>;
}

export function createMeter(pay: Pay): Meter {
  let began = performance.now();
  let paidSteps = 0;
  return {
    steps: 0,
    get isDue() {
      return this.steps - paidSteps >= partSteps;
    },
    async pay() {
      paidSteps = this.steps;
      await pay(performance.now() - began);
      began = performance.now();
    },
  };
}

export interface ValueSearch {
  readonly patterns: ValuePatterns;
  readonly text: string;
  readonly meter: Meter;
}

/**
 * @returns the end of the longest value that begins here, and `at` where none does. A promise where that takes long
 *   enough for others to have their turn.
 */
export function endOfMatch(search: ValueSearch, at: number): number | Promise<number> {
  let longest = at;
  const matching = eachMatch(search, at, (_, end) => {
    longest = Math.max(longest, end);
  });
  return matching ? matching.then(() => longest) : longest;
}

type OnMatch = (piece: string, end: number) => void;

/**
 * @returns the next place at which the first two bytes of a value are, or an earlier one where others have their turn.
 */
export function nextBegin(
  { patterns, text, meter }: ValueSearch,
  from: number,
  to: number,
): number {
  const { firsts, pairs } = patterns;
  const end = Math.min(to, from + partSteps);
  let at = from;
  for (; at < end; at += 1) {
    const first = text.charCodeAt(at);
    if (firsts[first] !== 1) continue;
    if (escapes.includes(first) || pairs.has(first * 256 + text.charCodeAt(at + 1))) break;
  }
  meter.steps += at - from;
  return at;
}

/** @returns a promise where others have their turn before it ends. */
function eachMatch(search: ValueSearch, at: number, onMatch: OnMatch): Promise<void> | undefined {
  const { meter } = search;
  meter.steps += 1;
  const parts = matching(search, at, onMatch);
  return parts.next().done ? undefined : finish(parts, meter);
}

async function finish(parts: Iterator<void>, meter: Meter): Promise<void> {
  do await meter.pay();
  while (!parts.next().done);
}

/** Yields where others should have their turn. */
function* matching(search: ValueSearch, at: number, onMatch: OnMatch): Generator<void> {
  const { patterns, text, meter } = search;
  const first = text.charCodeAt(at);
  for (const [gaps, { node, byFirst }] of patterns.roots) {
    const begun = escapes.includes(first) ? node.next.values() : byFirst.get(first);
    let reached: Reached = new Map();
    for (const step of begun ?? []) follow(search, at, step, reached);
    while (reached.size > 0) {
      const next: Reached = new Map();
      for (const [{ next: steps, pieces }, ends] of reached) {
        for (const piece of pieces) onMatch(piece, Math.max(...ends));
        if (steps.size === 0) continue;
        for (const begin of new Set([...ends].flatMap((end) => beginsAfter(text, end, gaps)))) {
          for (const step of steps.values()) follow(search, begin, step, next);
          if (meter.isDue) yield;
        }
      }
      reached = next;
    }
  }
}

/** Where the texts end that lead to a node. They are several only where the value has characters that escape. */
type Reached = Map<PatternNode, Set<number>>;

function follow(
  { text, meter }: ValueSearch,
  begin: number,
  { character, node }: PatternStep,
  reached: Reached,
): void {
  const ends = reached.get(node) ?? new Set();
  read(text, begin, character, ends);
  meter.steps += escapes.includes(character.points[0] ?? 0) ? stepsOfRun : 1;
  if (ends.size > 0) reached.set(node, ends);
}

/** In UTF-16 and UTF-32, there are zeros between the bytes of ASCII. */
function beginsAfter(text: string, at: number, { between, max }: Gaps): readonly number[] {
  let begin = at;
  while (begin < at + 3 && text.charCodeAt(begin) === 0) begin += 1;
  if (max === 0) return [begin];
  const begins = [begin];
  let last: number[] = [begin];
  for (let count = 0; count < max && last.length > 0; count += 1) {
    const next = new Set<number>();
    for (const one of last) read(text, one, between, next);
    begins.push(...next);
    last = [...next];
  }
  return begins;
}

/** Adds the ends of the character that begins here, if it does. */
function read(text: string, at: number, { points, times }: Character, ends: Set<number>): void {
  const code = text.charCodeAt(at);
  if (code < 0x80 && !escapes.includes(code)) {
    if (points.includes(code)) ends.add(at + 1);
    return;
  }
  const [point = 0] = points;
  if (escapes.includes(point)) {
    for (const end of endsOfRun(text, at, { point, times })) ends.add(end);
    return;
  }
  for (const one of points) {
    const end = endOfBytes(text, at, bytesOf(one));
    if (end > at) ends.add(end);
  }
  if (!escapes.includes(code)) return;
  for (const { point: one, end } of escapedAt(text, at)) if (points.includes(one)) ends.add(end);
}

/** As they are, or each as `%` and two digits. */
function endOfBytes(text: string, at: number, bytes: readonly number[]): number {
  let end = at;
  for (const byte of bytes) {
    if (text.charCodeAt(end) === byte) {
      end += 1;
      continue;
    }
    const [point, after] = percentAt(text, end);
    if (point !== byte) return at;
    end = after;
  }
  return end;
}

/**
 * The characters that escape are escaped by themselves: `\\`, `%25`, `&amp;`. A row of them is read as far as it goes,
 * because what follows may begin with another one, which is escaped a few times at most.
 */
function endsOfRun(
  text: string,
  from: number,
  { point, times }: { readonly point: number; readonly times: number },
): readonly number[] {
  const suffix = { [backslash]: '\\', [percent]: '25', [ampersand]: 'amp;' }[point] ?? '';
  const ends = new Set<number>();
  const endsMax = times * repeatsMax;
  endsFrom(from);
  // The set grows while it is walked.
  for (const at of ends) if (ends.size < endsMax) endsFrom(at);
  return [...ends]
    .sort((a, b) => a - b)
    .slice(times - 1)
    .slice(-repeatsMax);

  function endsFrom(at: number): void {
    if (text.charCodeAt(at) === point) ends.add(at + 1);
    if (at > from && text.startsWith(suffix, at)) ends.add(at + suffix.length);
    if (!escapes.includes(text.charCodeAt(at))) return;
    for (const escaped of escapedAt(text, at)) if (escaped.point === point) ends.add(escaped.end);
  }
}

/** An escape of an escape, and so on. */
const repeatsMax = 17;
const backslashForm = new RegExp(
  [
    String.raw`\\{1,16}(?:u(d[89ab][0-9a-f]{2})\\{1,16}u(d[c-f][0-9a-f]{2})|u\{0{0,8}([0-9a-f]{1,6})\}`,
    String.raw`|u([0-9a-f]{4})|x([0-9a-f]{2})|([ -/:-@[\]^-`,
    '`{-~])|([bfnrt]))',
  ].join(''),
  'iy',
);
const percentForm = /%(?:25){0,16}([0-9a-f]{2})/iy;
const ampersandForm =
  /&(?:amp;){0,16}(?:#0{0,8}([0-9]{1,7})|#x0{0,8}([0-9a-f]{1,6})|(lt|gt|quot|apos|nbsp));/iy;

const named: Readonly<Record<string, number>> = { lt: 60, gt: 62, quot: 34, apos: 39, nbsp: 160 };
const lettered: Readonly<Record<string, number>> = { b: 8, f: 12, n: 10, r: 13, t: 9 };

interface Escaped {
  readonly point: number;
  readonly end: number;
}

function escapedAt(text: string, at: number): readonly Escaped[] {
  const code = text.charCodeAt(at);
  const [point, end] =
    code === percent
      ? percentAt(text, at)
      : code === backslash
        ? backslashAt(text, at)
        : ampersandAt(text, at);
  return point !== undefined && point <= 0x10_ff_ff ? [{ point, end }] : [];
}

type Read = readonly [point: number | undefined, end: number];

function matchAt(form: RegExp, text: string, at: number): RegExpExecArray | null {
  form.lastIndex = at;
  return form.exec(text);
}

function percentAt(text: string, at: number): Read {
  const [whole = '', digits] = matchAt(percentForm, text, at) ?? [];
  return [digits === undefined ? undefined : Number.parseInt(digits, 16), at + whole.length];
}

function backslashAt(text: string, at: number): Read {
  const found = matchAt(backslashForm, text, at);
  if (!found) return [undefined, at];
  const [whole, high, low, braced, four, two, sign, letter = ''] = found;
  const end = at + whole.length;
  if (high !== undefined && low !== undefined) {
    const units = [high, low].map((one) => Number.parseInt(one, 16));
    return [pointOf(String.fromCharCode(...units)), end];
  }
  const digits = braced ?? four ?? two;
  if (digits !== undefined) return [Number.parseInt(digits, 16), end];
  return [sign === undefined ? lettered[letter.toLowerCase()] : pointOf(sign), end];
}

function ampersandAt(text: string, at: number): Read {
  const found = matchAt(ampersandForm, text, at);
  if (!found) return [undefined, at];
  const [whole, decimal, hex, name = ''] = found;
  const end = at + whole.length;
  if (decimal !== undefined) return [Number(decimal), end];
  return [hex === undefined ? named[name.toLowerCase()] : Number.parseInt(hex, 16), end];
}
