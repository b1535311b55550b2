/** XML 1.0: values become text of elements, values of attributes, or part of a CDATA section. */
import { ExpressionError } from '../evaluation/error.ts';
import { plain, xmlEntities } from './encodings.ts';
import {
  type Evaluating,
  flawAt,
  piecesOf,
  type TextPiece,
  type TextReferences,
} from './expressions.ts';
import { type TextPart, writtenPiece } from './parts.ts';

/** Sections that begin with `<` and are not tags, with their ends. Only CDATA sections may contain expressions. */
const sections = [
  { begin: '<!--', end: '-->' },
  { begin: '<![CDATA[', end: ']]>' },
  { begin: '<?', end: '?>' },
] as const;

const cdata = sections[1];

export function readXml(text: string, gathered: TextReferences): TextPart[] {
  const reader = new XmlReader(text, gathered);
  while (reader.readNext());
  return reader.parts;
}

class XmlReader {
  readonly parts: TextPart[] = [];
  readonly #text: string;
  readonly #gathered: TextReferences;
  #at = 0;
  #kept = 0;
  /** The start of the next expression. Before it, only the structure is parsed. */
  #mark: number;

  constructor(text: string, gathered: TextReferences) {
    this.#text = text;
    this.#gathered = gathered;
    this.#mark = text.indexOf('{{');
  }

  /** Reads characters up to a section or a tag. False once there are no more expressions. */
  readNext(): boolean {
    if (this.#mark < 0) {
      this.parts.push(this.#text.slice(this.#kept));
      return false;
    }
    const section = this.#sectionAt(this.#at);
    if (section) this.#readSection(section);
    else if (this.#text.startsWith('<!', this.#at)) this.#readDeclaration();
    else if (this.#text.startsWith('<', this.#at)) this.#readTag();
    else this.#readText();
    return true;
  }

  #sectionAt(at: number) {
    return sections.find(({ begin }) => this.#text.startsWith(begin, at));
  }

  #readText(): void {
    const next = this.#text.indexOf('<', this.#at);
    const end = next < 0 ? this.#text.length : next;
    if (this.#mark < end) this.#evaluate(this.#at, end, writtenText);
    this.#goTo(end);
  }

  #readSection({ begin, end }: (typeof sections)[number]): void {
    const from = this.#at + begin.length;
    const close = this.#indexOf(end, from);
    if (begin !== cdata.begin) this.#refuseBefore(close);
    else if (this.#mark < close) this.#evaluateSection(from, close);
    this.#goTo(close + end.length);
  }

  /** A document type, whose internal subset has declarations, comments, and quoted values. */
  #readDeclaration(): void {
    let depth = 0;
    let at = this.#at + 2;
    for (; depth > 0 || this.#text[at] !== '>'; at += 1) {
      const character = this.#text[at];
      if (character === undefined) throw this.#unclosed();
      const section = character === '<' ? this.#sectionAt(at) : undefined;
      if (section) at = this.#indexOf(section.end, at) + section.end.length - 1;
      else if (character === '"' || character === "'") at = this.#indexOf(character, at + 1);
      else if (character === '[' || character === '<') depth += 1;
      else if (character === ']' || character === '>') depth -= 1;
    }
    this.#refuseBefore(at);
    this.#goTo(at + 1);
  }

  #readTag(): void {
    for (let at = this.#at + 1; ; at += 1) {
      const character = this.#text[at];
      if (character === undefined) throw this.#unclosed();
      if (character === '>') {
        this.#refuseBefore(at);
        this.#goTo(at + 1);
        return;
      }
      if (character !== '"' && character !== "'") continue;
      this.#refuseBefore(at);
      const end = this.#indexOf(character, at + 1);
      if (this.#mark >= 0 && this.#mark < end) this.#evaluate(at + 1, end, writtenAttribute);
      this.#goTo(end);
      at = end;
    }
  }

  #evaluate(from: number, to: number, escapeText: (value: string) => string): void {
    const text = this.#text.slice(from, to);
    const pieces = piecesOf({ text, offset: from, encoding: xmlEntities }, this.#gathered);
    this.parts.push(this.#text.slice(this.#kept, from));
    for (const piece of pieces) {
      this.parts.push(
        typeof piece === 'string'
          ? piece
          : (evaluating) => writtenPiece(piece, evaluating, escapeText),
      );
    }
    this.#kept = to;
  }

  #evaluateSection(from: number, to: number): void {
    const text = this.#text.slice(from, to);
    const pieces = piecesOf({ text, offset: from, encoding: plain }, this.#gathered);
    this.parts.push(this.#text.slice(this.#kept, from));
    this.parts.push((evaluating) => writtenSection(pieces, evaluating));
    this.#kept = to;
  }

  #goTo(at: number): void {
    this.#at = at;
    if (this.#mark >= 0 && this.#mark < at) this.#mark = this.#text.indexOf('{{', at);
  }

  #refuseBefore(end: number): void {
    if (this.#mark < 0 || this.#mark >= end) return;
    throw flawAt(
      this.#mark,
      'expected no expression in this part of XML: only text, values of attributes and CDATA sections have them',
    );
  }

  #indexOf(end: string, from: number): number {
    const at = this.#text.indexOf(end, from);
    if (at < 0) throw this.#unclosed();
    return at;
  }

  #unclosed(): ExpressionError {
    return flawAt(this.#at, 'expected XML, of which this part does not end');
  }
}

const references: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};

/** A carriage return by itself would be read as the end of a line. */
function writtenText(value: string): string {
  return checked(value).replace(/[&<>"'\r]/g, (character) => references[character] ?? character);
}

/** White space of any kind would be read as a blank. */
function writtenAttribute(value: string): string {
  const spelled = /[&<>"'\t\n\r]/g;
  return checked(value).replace(spelled, (character) => references[character] ?? character);
}

const between = `${cdata.end}${cdata.begin}`;

/** The end of a section is parted into two sections, also where it is made of several pieces. */
function writtenSection(pieces: readonly TextPiece[], evaluating: Evaluating): string {
  let section = '';
  for (const piece of pieces) {
    const written = writtenPiece(piece, evaluating, (value) =>
      checked(value)
        .replaceAll(cdata.end, `]]${between}>`)
        .replaceAll('\r', `${cdata.end}&#13;${cdata.begin}`),
    );
    const seam = section.slice(-2) + written.slice(0, 2);
    section += seam.includes(cdata.end) ? between + written : written;
  }
  return section;
}

const characterPattern = /[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;

function checked(value: string): string {
  if (!characterPattern.test(value)) return value;
  throw new ExpressionError('gives a character that XML cannot hold');
}
