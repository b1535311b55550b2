/** The pieces of a parsed part of a request: literal strings and the expressions between them. */
import { ExpressionError } from '../evaluation/error.ts';
import { textOf } from '../evaluation/result.ts';
import type { Encoding } from './encodings.ts';
import {
  type Evaluating,
  located,
  orNull,
  piecesOf,
  type TextPiece,
  type TextReferences,
  writtenWork,
} from './expressions.ts';

export type TextPart = string | ((evaluating: Evaluating) => string);

/** The text of a value as it is written at its place. */
export type EscapeValue = (value: string) => string;

/** The text of a piece; escaping that makes it longer is paid for. */
export function writtenPiece(
  piece: TextPiece,
  evaluating: Evaluating,
  escapeText: EscapeValue,
): string {
  if (typeof piece === 'string') return piece;
  const value = textOf(piece.evaluate(evaluating));
  const written = located(piece.at, () =>
    orNull(evaluating, () => {
      const escaped = escapeText(value);
      evaluating.evaluation.budget.use((escaped.length - value.length) * writtenWork);
      return escaped;
    }),
  );
  return written ?? textOf(null);
}

const fieldValuePattern = /^[\t\x20-\x7e\x80-\xff]*$/;

const escapes = {
  text: (value) => value,
  header: (value) => {
    if (fieldValuePattern.test(value)) return value;
    throw new ExpressionError('gives a character that a header cannot hold');
  },
  form: percentEncoded,
  query: percentEncoded,
} as const satisfies Record<string, EscapeValue>;

/** A text in which every place is like the others. */
export function readUniform(
  text: string,
  { form, encoding }: { readonly form: keyof typeof escapes; readonly encoding: Encoding },
  gathered: TextReferences,
): TextPart[] {
  const escapeText = escapes[form];
  return piecesOf({ text, offset: 0, encoding }, gathered).map((piece) =>
    typeof piece === 'string' ? piece : (evaluating) => writtenPiece(piece, evaluating, escapeText),
  );
}

/** Only letters, digits and `-_.!~*'()` stay, none of which ends a segment, a parameter or an address. */
export function percentEncoded(value: string): string {
  if (value.isWellFormed()) return encodeURIComponent(value);
  throw new ExpressionError('gives text with half of a character, which no address can hold');
}
