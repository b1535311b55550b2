/** Search terms: keyed digests under which a token is found by values that are never decrypted for it. */
import { searchTermOf } from '../../keys/digest.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';
import { type Evaluated, evaluateText } from './sealed-row.ts';

/** A value under which a token may be found. */
export interface SearchedValue {
  readonly field: string;
  readonly value: string;
}

/** A value that a search index gave. */
export function dataValue(value: string): SearchedValue {
  return { field: 'data', value };
}

/** A pair of metadata, in whatever case it is written. */
export function metadataValue(key: string, value: string): SearchedValue {
  return { field: `metadata.${key.toLowerCase()}`, value: value.toLowerCase() };
}

/**
 * The term of the value under the active key, and its terms under the other keys that live: a token is found under the
 * one of them that was active when it was written.
 */
export function termsOfValue({ keyring }: Tenant, { field, value }: SearchedValue) {
  const [term = '', ...others] = keyring
    .livingSecrets('search')
    .map((key) => Buffer.from(searchTermOf(key, field, value)).toString('base64url'));
  return { term, others };
}

type SearchableToken = Pick<
  Row<'tokens'>,
  'token_id' | 'created_at' | 'container' | 'type' | 'expires_at'
>;

/** The terms under which a token is found, without repetition. */
export function searchTerms(
  tenant: Tenant,
  token: SearchableToken,
  evaluated: Evaluated,
): Row<'search_terms'>[] {
  const { contents } = evaluated;
  const terms = new Set<string>();
  contents.searchIndexes.forEach((expression, index) => {
    const value = evaluateText(expression, `search_indexes[${index}]`, evaluated);
    terms.add(termOf(tenant, dataValue(value)));
  });
  for (const [key, value] of Object.entries(contents.metadata ?? {})) {
    terms.add(termOf(tenant, metadataValue(key, value)));
  }
  const { token_id, created_at, container, type, expires_at } = token;
  const shown = { token_id, created_at, container, type, expires_at };
  return [...terms].map((term) => ({ tenant_id: tenant.id, term, ...shown }));
}

function termOf(tenant: Tenant, { field, value }: SearchedValue): string {
  const key = tenant.keyring.secret('search');
  return Buffer.from(searchTermOf(key, field, value)).toString('base64url');
}
