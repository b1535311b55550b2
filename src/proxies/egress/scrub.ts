/**
 * Takes values out of a response in every usual encoding, as it streams. What is found is overwritten with as many
 * asterisks, so that lengths stay right.
 */
import { Transform, type TransformCallback } from 'node:stream';

/** A shorter value, such as a card code, is in many texts by chance, and its absence would show it. */
const scrubbedLengthMin = 6;
/** A longer value is looked for in pieces. */
const pieceLength = 192;
/** Of one value. */
const piecesMax = 512;

/** What a value looks like on the way, as strings of single bytes. */
export type ScrubbedForms = readonly string[];

/**
 * The forms of all values, the longest first. Values that are too short have none, and neither has what its program
 * knows: overwriting a guess of the program, which its destination gives back, would say that the guess is right.
 */
export function formsOf(values: Iterable<string>, known: string): ScrubbedForms {
  const forms = new Set<string>();
  for (const value of values) {
    for (const piece of piecesOf(value)) {
      const own = encodingsOf(piece).filter(({ length }) => length >= scrubbedLengthMin);
      if (scrubText(own, known).found === 0) for (const form of own) forms.add(form);
    }
  }
  return [...forms].toSorted((one, other) => other.length - one.length);
}

function piecesOf(value: string): readonly string[] {
  if (value.length < scrubbedLengthMin) return [];
  const pieces: string[] = [];
  for (let at = 0; at < value.length && pieces.length < piecesMax; at += pieceLength) {
    const piece = value.slice(at, at + pieceLength);
    // A short rest is looked for with what comes before it.
    pieces.push(piece.length < scrubbedLengthMin ? value.slice(-pieceLength) : piece);
  }
  return pieces;
}

function encodingsOf(value: string): readonly string[] {
  const bytes = Buffer.from(value, 'utf8');
  const hex = bytes.toString('hex');
  const json = JSON.stringify(value).slice(1, -1);
  const percent = encodeURIComponent(value.toWellFormed());
  const texts = [
    value,
    json,
    json.replaceAll('/', '\\/'),
    escapedBeyondAscii(json),
    percent,
    percent.replaceAll('%20', '+'),
    percent.replace(/%[0-9A-F]{2}/g, (one) => one.toLowerCase()),
    hex,
    hex.toUpperCase(),
    ...(/^\d{12,19}$/.test(value) ? groupsOf(value) : []),
  ].map((text) => Buffer.from(text, 'utf8').toString('latin1'));
  return [...texts, ...base64Of(bytes)];
}

function escapedBeyondAscii(json: string): string {
  return json.replace(
    /[\u0080-\uffff]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** As card numbers are printed. */
function groupsOf(digits: string): readonly string[] {
  const groups = digits.match(/.{1,4}/g) ?? [];
  return [groups.join(' '), groups.join('-')];
}

/** Within longer data a value begins at any of three places, and the characters at its ends hold parts of others. */
function base64Of(bytes: Buffer): readonly string[] {
  return [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    const begin = Math.ceil((before * 8) / 6);
    const end = Math.floor(((before + bytes.length) * 8) / 6);
    const whole = text.slice(begin, end);
    return [whole, whole.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

/** @returns the text without the forms, and how many were found. */
export function scrubText(forms: ScrubbedForms, text: string): { text: string; found: number } {
  if (forms.length === 0) return { text, found: 0 };
  let found = 0;
  const scrubbed = text.replace(patternOf(forms), (form) => {
    found += 1;
    return '*'.repeat(form.length);
  });
  return { text: scrubbed, found };
}

const patterns = new WeakMap<ScrubbedForms, RegExp>();

function patternOf(forms: ScrubbedForms): RegExp {
  const known = patterns.get(forms);
  if (known) return known;
  const pattern = new RegExp(forms.map((form) => RegExp.escape(form)).join('|'), 'g');
  patterns.set(forms, pattern);
  return pattern;
}

/**
 * Holds back only the end of what has come that may be the beginning of a form, which has at most the length of the
 * longest one: events of a stream pass at once.
 */
export class Scrub extends Transform {
  readonly #forms: ScrubbedForms;
  readonly #onFound: (count: number) => void;
  #held = '';

  constructor(forms: ScrubbedForms, onFound: (count: number) => void) {
    super();
    this.#forms = forms;
    this.#onFound = onFound;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    const { text, found } = scrubText(this.#forms, this.#held + chunk.toString('latin1'));
    if (found > 0) this.#onFound(found);
    const begun = text.length - this.#begunAtEnd(text);
    this.#held = text.slice(begun);
    done(null, begun === 0 ? undefined : Buffer.from(text.slice(0, begun), 'latin1'));
  }

  override _flush(done: TransformCallback): void {
    done(null, this.#held === '' ? undefined : Buffer.from(this.#held, 'latin1'));
    this.#held = '';
  }

  /** The length of the longest end of the text with which a form begins. */
  #begunAtEnd(text: string): number {
    const longest = Math.min(text.length, (this.#forms[0]?.length ?? 1) - 1);
    for (let length = longest; length > 0; length -= 1) {
      const end = text.slice(-length);
      if (this.#forms.some((form) => form.length > length && form.startsWith(end))) return length;
    }
    return 0;
  }
}
