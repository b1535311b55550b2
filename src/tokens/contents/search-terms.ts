/** Search terms: keyed digests under which a token is found by values that are never decrypted for it. */
import { searchTermOf } from '../../keys/digest.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';
import { type Evaluated, evaluateText } from './sealed-row.ts';

/** The term of a value that a search index gave. */
export function dataTerm(tenant: Tenant, value: string): string {
  return termOf(tenant, 'data', value);
}

/** The term of a pair of metadata, in whatever case it is written. */
export function metadataTerm(tenant: Tenant, key: string, value: string): string {
  return termOf(tenant, `metadata.${key.toLowerCase()}`, value.toLowerCase());
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
    terms.add(dataTerm(tenant, evaluateText(expression, `search_indexes[${index}]`, evaluated)));
  });
  for (const [key, value] of Object.entries(contents.metadata ?? {})) {
    terms.add(metadataTerm(tenant, key, value));
  }
  const { token_id, created_at, container, type, expires_at } = token;
  const shown = { token_id, created_at, container, type, expires_at };
  return [...terms].map((term) => ({ tenant_id: tenant.id, term, ...shown }));
}

function termOf(tenant: Tenant, field: string, value: string): string {
  const key = tenant.keyring.secret('search');
  return Buffer.from(searchTermOf(key, field, value)).toString('base64url');
}
