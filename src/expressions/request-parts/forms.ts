/** The formats of the parts of a request, which decide how values are escaped in them. */

/** The last three are no bodies: a path or a part of one, a query without `?`, and the value of a header. */
export type TextForm = 'json' | 'xml' | 'form' | 'text' | 'path' | 'query' | 'header';

/** The largest body that callers of this folder give to it, in bytes. */
export const bodyWithExpressionsBytesMax = 5 * 1024 * 1024;

/** Media types by pattern; the first that fits decides. Lines of JSON are scanned as one JSON text is. */
const mediaTypes: readonly (readonly [RegExp, TextForm])[] = [
  [/^(?:application|text)\/(?:json|x-ndjson|ndjson|jsonl|json-seq)$|\+json$/, 'json'],
  [/^(?:application|text)\/xml$|\+xml$/, 'xml'],
  [/^application\/x-www-form-urlencoded$/, 'form'],
  [/^text\/|^application\/(?:javascript|ecmascript|graphql|sql|yaml|x-yaml)$/, 'text'],
];

/** `undefined` for a body that is no text, or of which that is not known: it passes as bytes. */
export function formOf(mediaType: string | undefined): TextForm | undefined {
  const [essence = ''] = (mediaType ?? '').split(';', 1);
  const name = essence.trim().toLowerCase();
  return mediaTypes.find(([pattern]) => pattern.test(name))?.[1];
}

const encodedBeginPattern = /(?:\{|%7[Bb]){2}/;

/** Whether a text holds an expression at all, in any encoding. Most do not. */
export function hasExpressions(text: string): boolean {
  return text.includes('{{') || (text.includes('%7') && encodedBeginPattern.test(text));
}
