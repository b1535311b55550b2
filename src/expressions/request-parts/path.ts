/** The path of a URL: no value adds a segment, removes one, or climbs out of the path. */
import { ExpressionError } from '../evaluation/error.ts';
import { percents } from './encodings.ts';
import {
  type Evaluating,
  orNull,
  piecesOf,
  type TextPiece,
  type TextReferences,
} from './expressions.ts';
import { percentEncoded, type TextPart, writtenPiece } from './parts.ts';

export function readPath(text: string, gathered: TextReferences): TextPart[] {
  const pieces = piecesOf({ text, offset: 0, encoding: percents }, gathered);
  if (pieces.every((piece) => typeof piece === 'string')) return [pieces.join('')];
  return [(evaluating) => writePath(pieces, evaluating)];
}

/** The characters that URL parsers treat as a slash. */
const slashPattern = /[/\\]/;

/** What there is of a segment, and at which index its last expression is written. */
interface Segment {
  readonly text: string;
  readonly evaluated?: number;
}

function writePath(pieces: readonly TextPiece[], evaluating: Evaluating): string {
  const written: string[] = [];
  let segment: Segment = { text: '' };
  const end = ({ text, evaluated }: Segment) => {
    if (evaluated === undefined || !notASegmentPattern.test(text)) return;
    // A word in place of a value of which the caller must not learn that it is no segment.
    if (orNull(evaluating, refuseSegment) === null) written[evaluated] = 'null';
  };
  for (const [index, piece] of pieces.entries()) {
    const text = writtenPiece(piece, evaluating, percentEncoded);
    written.push(text);
    if (typeof piece !== 'string') {
      segment = { text: segment.text + text, evaluated: index };
      continue;
    }
    const [first = '', ...others] = text.split(slashPattern);
    segment = { ...segment, text: segment.text + first };
    for (const other of others) {
      end(segment);
      segment = { text: other };
    }
  }
  end(segment);
  return written.join('');
}

/** A segment of dots leads upwards, encoded or not. An empty one vanishes where slashes are merged. */
const notASegmentPattern = /^(?:\.|%2[eE]){0,2}$/;

function refuseSegment(): never {
  throw new ExpressionError(
    'a segment of the path with an expression must not be empty, "." or ".."',
  );
}
