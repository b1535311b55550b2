/**
 * The search language: `field:value` terms, all of which must hold, joined by `AND`. A value is
 * bare or in double quotes, where `\"` and `\\` mean a quote and a backslash. docs/adr says why no
 * library reads it.
 */
import { containerForm, parseContainer } from '../../base/container.ts';
import { invalid, type VaultError } from '../../base/errors.ts';
import { parseTokenId } from '../../base/ids.ts';
import type { MetadataPair } from '../../store/queries/token-conditions.ts';
import { parseTokenType, tokenTypes } from '../contents/token-types.ts';
import type { TokenFilter } from './filter.ts';

export const queryLengthMax = 200;

/** A parsed search; the route decides whether the case of metadata matters. */
export type Search = Omit<TokenFilter, 'metadataCase'>;

interface Term {
  readonly field: string;
  /** The part of `metadata.<key>` after the dot. */
  readonly key: string;
  readonly value: string;
}

const quoted = String.raw`"((?:[^"\\]|\\["\\])*)"`;
/** Other search languages give these a meaning; here they would only ever find nothing. */
const bare = String.raw`([^\s"\\*?()[\]{}^~!]+)`;
const termPattern = new RegExp(
  String.raw`(?:(id|data|container|type|fingerprint)|metadata\.(?:${quoted}|([^\s":]+))):(?:${quoted}|${bare})`,
  'uy',
);
const andPattern = /\s+AND\s+/uy;

const termForm =
  'expected a term such as data:1234, metadata.key:value or container:"/pci/"; a value with spaces, ' +
  'quotes or any of \\ * ? ( ) [ ] { } ^ ~ ! must be in double quotes';

/**
 * An empty query finds everything.
 *
 * @throws VaultError `validation_failed` naming `query` and the position of the error, never the string there.
 */
export function parseSearch(query: string): Search {
  const terms = termsOf(query.trimEnd());
  for (const field of ['id', 'container', 'type', 'fingerprint']) {
    const [, second] = terms.filter((term) => term.field === field);
    if (second) throw invalid('query', `must have at most one term for the field ${field}`);
  }
  const valuesOf = (field: string) =>
    terms.filter((term) => term.field === field).map(({ value }) => value);
  const [id] = valuesOf('id');
  const [container] = valuesOf('container');
  const [type] = valuesOf('type');
  const [fingerprint] = valuesOf('fingerprint');
  const pairs: MetadataPair[] = terms.filter((term) => term.field === 'metadata');
  return {
    ...(id !== undefined && { ids: [parseTokenId(id) ?? []].flat() }),
    ...(container !== undefined && { container: readContainer(container) }),
    ...(type !== undefined && { type: readType(type) }),
    ...(fingerprint !== undefined && { fingerprint: readFingerprint(fingerprint) }),
    data: valuesOf('data'),
    metadata: pairs.map(({ key, value }) => ({ key, value })),
  };
}

function termsOf(query: string): Term[] {
  const terms: Term[] = [];
  let at = query.search(/\S/);
  while (at >= 0) {
    termPattern.lastIndex = at;
    const found = termPattern.exec(query);
    if (found === null) throw flawAt(at, termForm);
    const [, field = 'metadata', quotedKey, bareKey, quotedValue, bareValue] = found;
    terms.push({
      field,
      key: bareKey ?? unescaped(quotedKey ?? ''),
      value: bareValue ?? unescaped(quotedValue ?? ''),
    });
    at = termPattern.lastIndex;
    if (at === query.length) break;
    andPattern.lastIndex = at;
    if (andPattern.exec(query) === null) throw flawAt(at, 'expected AND between terms');
    at = andPattern.lastIndex;
  }
  return terms;
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/gsu, '$1');
}

function flawAt(at: number, expected: string): VaultError {
  return invalid('query', `is not a valid query: at character ${at + 1}, ${expected}`);
}

function readContainer(text: string) {
  const container = parseContainer(text);
  if (container === undefined) throw invalid('query', `has a container that ${containerForm}`);
  return container;
}

function readType(text: string) {
  const type = parseTokenType(text);
  if (type !== undefined) return type;
  throw invalid('query', `must have a type that is one of ${Object.keys(tokenTypes).join(', ')}`);
}

const fingerprintForm = /^[A-Za-z0-9]{1,100}$/;

function readFingerprint(text: string): string {
  if (!fingerprintForm.test(text)) {
    throw invalid('query', 'must have a fingerprint of letters and digits');
  }
  return text;
}
