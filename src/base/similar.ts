/** The word that was probably meant. */

/** So much of a word may differ from the one that is suggested. */
const differingPart = 0.4;

/** A longer word is like none: comparing takes time for each of its characters. */
const wordLengthMax = 100;

/** The candidate that is closest to the word, if one is close; `undefined` otherwise. */
export function closestTo(word: string, candidates: readonly string[]): string | undefined {
  if (word.length > wordLengthMax) return undefined;
  let best: { readonly text: string; readonly edits: number } | undefined;
  for (const text of candidates) {
    const edits = editsBetween(word, text);
    if (edits < (best?.edits ?? Infinity)) best = { text, edits };
  }
  if (best === undefined) return undefined;
  return best.edits <= Math.max(word.length, best.text.length) * differingPart
    ? best.text
    : undefined;
}

/** Levenshtein's distance, row by row. */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let line = 1; line <= from.length; line++) {
    const next = [line];
    for (let column = 1; column <= to.length; column++) {
      const replaced = (row[column - 1] ?? 0) + (from[line - 1] === to[column - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
