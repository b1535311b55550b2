/** How an expression is escaped in its context: not at all, or as in JSON, XML, or a URL. */
import { markPattern, rawEndPattern } from '../reading.ts';

export interface Encoding {
  /** Finds where an expression begins, or a part that is to be taken literally. */
  readonly mark: RegExp;
  readonly rawEnd: RegExp;
  readonly decode: (written: string) => Decoded;
}

export interface Decoded {
  readonly text: string;
  /** Where in what was written the character at this index of the text begins. */
  readonly writtenIndex: (index: number) => number;
}

const asItIs = (written: string): Decoded => ({ text: written, writtenIndex: (index) => index });

function decoder(escapes: RegExp, read: (spelled: string) => string): Encoding['decode'] {
  return (written) => {
    const ends: { readonly text: number; readonly written: number }[] = [];
    let text = '';
    let kept = 0;
    for (const { 0: spelled, index } of written.matchAll(escapes)) {
      text += written.slice(kept, index) + read(spelled);
      kept = index + spelled.length;
      ends.push({ text: text.length, written: kept });
    }
    text += written.slice(kept);
    const writtenIndex = (index: number) => {
      const before = ends.findLast((end) => end.text <= index) ?? { text: 0, written: 0 };
      return before.written + index - before.text;
    };
    return { text, writtenIndex };
  };
}

const plainMarks = { mark: markPattern, rawEnd: rawEndPattern };

export const plain: Encoding = { ...plainMarks, decode: asItIs };

/** Within a JSON string. */
export const jsonEscapes: Encoding = {
  ...plainMarks,
  decode: decoder(
    /\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])/g,
    (spelled) => JSON.parse(`"${spelled}"`) as string,
  ),
};

const entities: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&amp;': '&',
  '&quot;': '"',
  '&apos;': "'",
};

/** Within the text of an XML element or the value of an attribute. */
export const xmlEntities: Encoding = {
  ...plainMarks,
  decode: decoder(/&(?:lt|gt|amp|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});/g, (entity) => {
    const known = entities[entity];
    if (known !== undefined) return known;
    const digits = entity.slice(2, -1);
    const code = digits.startsWith('x') ? Number.parseInt(digits.slice(1), 16) : Number(digits);
    return code <= 0x10ffff ? String.fromCodePoint(code) : entity;
  }),
};

const [open, close] = [String.raw`(?:\{|%7[Bb])`, String.raw`(?:\}|%7[Dd])`];
const [beginTag, endTag] = [`${open}%(?:25)?-?`, `-?%(?:25)?${close}`];
const blanks = String.raw`(?:\s|\+|%20|%0[9ADad])*`;

const percentMarks = {
  mark: new RegExp(`${open}{2}|${beginTag}${blanks}raw${blanks}${endTag}`, 'g'),
  rawEnd: new RegExp(`${beginTag}${blanks}endraw${blanks}${endTag}`, 'g'),
};

/** The octets of one character of UTF-8. */
const octets = '%[0-7][0-9a-fA-F]|%[c-fC-F][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){1,3}';

/** Within a path. */
export const percents: Encoding = {
  ...percentMarks,
  decode: decoder(new RegExp(octets, 'g'), decoded),
};

/** Within a form or a query, where a plus sign is a blank. */
export const percentsWithPlus: Encoding = {
  ...percentMarks,
  decode: decoder(new RegExp(`${octets}|\\+`, 'g'), (spelled) =>
    spelled === '+' ? ' ' : decoded(spelled),
  ),
};

/** What is no character stays as it was written. */
function decoded(spelled: string): string {
  try {
    return decodeURIComponent(spelled);
  } catch {
    return spelled;
  }
}

/** True for the mark of an expression, not of a part to be taken literally: only that names `raw`. */
export function beginsExpression(mark: string): boolean {
  return !mark.endsWith('}') && !/%7d$/i.test(mark);
}
