/** Metadata filters in a query string, in the three ways in which clients write a map. */
import Type from 'typebox';
import { invalid } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import type { MetadataPair } from '../store/queries/token-conditions.ts';
import { metadataKeysMax } from '../tokens/contents/contents.ts';
import { attribute, shownAs } from './declaration/shape.ts';

const value = Type.Union([Type.String(), Type.Array(Type.String())]);

/** Members of a query schema: `metadata={"k":"v"}`. */
export const metadataProperties = {
  metadata: attribute(
    shownAs(Type.Optional(value), {
      type: 'object',
      maxProperties: metadataKeysMax,
      propertyNames: { minLength: 1 },
      additionalProperties: { type: 'string' },
    }),
    'Only with these metadata. Also understood: `metadata.<name>=<text>`, and `metadata` as a JSON object.',
  ),
};

/** Options of a query schema: `metadata.k=v` and `metadata[k]=v`. */
export const metadataPatterns = {
  // A name may begin with a line break, or have one.
  patternProperties: { '^metadata\\.[^]': value, '^metadata\\[[^]+\\]$': value },
};

const dotted = /^metadata\.(.+)$/s;
const bracketed = /^metadata\[(.+)\]$/s;

/**
 * The pairs in their order; a key that is repeated is ignored.
 *
 * @throws VaultError `validation_failed` naming `metadata`.
 */
export function metadataOf(query: object): readonly MetadataPair[] {
  const pairs = new Map<string, MetadataPair>();
  const add = (key: string, text: unknown) => {
    if (typeof text !== 'string') throw invalid('metadata', form);
    if (!pairs.has(key)) pairs.set(key, { key, value: text });
  };
  for (const [name, given] of Object.entries(query)) {
    const first: unknown = [given].flat()[0];
    if (name === 'metadata') for (const [key, text] of entriesOf(first)) add(key, text);
    const key = dotted.exec(name)?.[1] ?? bracketed.exec(name)?.[1];
    if (key !== undefined) add(key, first);
  }
  if (pairs.size > metadataKeysMax) {
    throw invalid('metadata', `must have at most ${metadataKeysMax} keys`);
  }
  return [...pairs.values()];
}

const form = 'must be a JSON object of strings, metadata.<key>=<text> or metadata[<key>]=<text>';

function entriesOf(text: unknown): [string, unknown][] {
  try {
    const map: unknown = JSON.parse(String(text));
    if (isObject(map)) return Object.entries(map);
  } catch {
    // The parser's message quotes the value; the response below does not.
  }
  throw invalid('metadata', form);
}
