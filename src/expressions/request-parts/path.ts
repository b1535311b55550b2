/** The path of a URL: no value adds a segment, removes one, or climbs out of the path. */
import { ExpressionError } from '../evaluation/error.ts';
import { percents } from './encodings.ts';
import { type Evaluating, piecesOf, type TextPiece, type TextReferences } from './expressions.ts';
import { percentEncoded, type TextPart, writtenPiece } from './parts.ts';

export function readPath(text: string, gathered: TextReferences): TextPart[] {
  const pieces = piecesOf({ text, offset: 0, encoding: percents }, gathered);
  if (pieces.every((piece) => typeof piece === 'string')) return [pieces.join('')];
  return [(evaluating) => writePath(pieces, evaluating)];
}

/** The characters that URL parsers treat as a slash. */
const slashPattern = /[/\\]/;

function writePath(pieces: readonly TextPiece[], evaluating: Evaluating): string {
  let segment = { text: '', evaluated: false };
  const written = pieces.map((piece) => {
    const text = writtenPiece(piece, evaluating, percentEncoded);
    const evaluated = typeof piece !== 'string';
    const [first = '', ...others] = evaluated ? [text] : text.split(slashPattern);
    segment = { text: segment.text + first, evaluated: segment.evaluated || evaluated };
    for (const other of others) {
      checkSegment(segment);
      segment = { text: other, evaluated: false };
    }
    return text;
  });
  checkSegment(segment);
  return written.join('');
}

/** A segment of dots leads upwards, encoded or not. An empty one vanishes where slashes are merged. */
const notASegmentPattern = /^(?:\.|%2[eE]){0,2}$/;

function checkSegment({ text, evaluated }: { text: string; evaluated: boolean }): void {
  if (!evaluated || !notASegmentPattern.test(text)) return;
  throw new ExpressionError(
    'a segment of the path with an expression must not be empty, "." or ".."',
  );
}
