/** The strings of a JSON text, with their places: those that are values, and not names. */

export interface JsonString {
  /** Between its quotes. */
  readonly begin: number;
  readonly end: number;
  /** Names of members, and numbers of elements. */
  readonly path: readonly string[];
}

interface OpenValue {
  readonly isList: boolean;
  index: number;
  name: string;
}

const quote = 0x22;
const backslash = 0x5c;

/** Policies name no deeper places. */
const depthMax = 64;

/**
 * Of a text that is not JSON, as many as are found. The same for lines of JSON. What is deeper than any policy has a
 * place is left out.
 * @param isWanted whether the string between the indexes is: the paths of all would take more than the text.
 */
export function stringsOfJson(
  text: string,
  isWanted: (begin: number, end: number) => boolean,
): readonly JsonString[] {
  const strings: JsonString[] = [];
  const open: OpenValue[] = [];
  const pattern = /["[\]{},]/g;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const { 0: mark, index } = match;
    const inner = open.at(-1);
    if (mark === '[' || mark === '{') open.push({ isList: mark === '[', index: 0, name: '' });
    else if (mark === ']' || mark === '}') open.pop();
    else if (mark === ',') {
      if (inner) inner.index += 1;
    } else {
      const end = endOfString(text, index + 1);
      pattern.lastIndex = end + 1;
      if (inner?.isList === false && isName(text, end + 1)) {
        inner.name = decoded(text.slice(index, end + 1));
      } else if (open.length <= depthMax && isWanted(index + 1, end)) {
        const path = open.map(({ isList, index: at, name }) => (isList ? String(at) : name));
        strings.push({ begin: index + 1, end, path });
      }
    }
  }
  return strings;
}

/** Where the closing quote is, or the text ends. */
function endOfString(text: string, begin: number): number {
  for (let at = begin; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at += 1;
  }
  return text.length;
}

const colonPattern = /[ \t\r\n]*:/y;

function isName(text: string, after: number): boolean {
  colonPattern.lastIndex = after;
  return colonPattern.test(text);
}

function decoded(name: string): string {
  try {
    return String(JSON.parse(name));
  } catch {
    return name;
  }
}
