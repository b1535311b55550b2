/** A token as it is stored: data sealed, fingerprint and search terms keyed. */
import { fingerprintOf, searchTermOf } from '../crypto/digest.ts';
import { openText, sealText } from '../crypto/envelope.ts';
import { ExpressionError } from '../expressions/error.ts';
import { compileExpression, evaluateExpression } from '../expressions/expression.ts';
import { invalid } from '../lib/errors.ts';
import type { TokenId } from '../lib/ids.ts';
import type { Json } from '../lib/json.ts';
import type { Random } from '../lib/random.ts';
import { Secret } from '../lib/secret.ts';
import type { Row } from '../store/tables.ts';
import type { Tenant } from './tenants.ts';
import type { Contents } from './token-contents.ts';
import { tokenTypes } from './token-types.ts';

/** The name under which search indexes over data are keyed. */
const searchField = 'data';

/** What follows from the contents alone. */
type Derived = Pick<
  Row<'tokens'>,
  | 'type'
  | 'container'
  | 'data'
  | 'mask'
  | 'metadata'
  | 'fingerprint'
  | 'fingerprint_expression'
  | 'search_indexes'
  | 'expires_at'
  | 'expires_offset'
>;

export interface Sealing {
  readonly tenant: Tenant;
  readonly id: TokenId;
  readonly contents: Contents;
  readonly fingerprint: string | null;
  readonly random: Random;
}

export function deriveRow({ tenant, id, contents, fingerprint, random }: Sealing): Derived {
  const keys = tenant.keyring.sealing('data');
  const text = JSON.stringify(contents.data);
  return {
    type: contents.type,
    container: contents.container,
    data: sealText(keys, { tenant: tenant.id, id, field: 'data' }, text, random),
    mask: contents.mask === undefined ? null : JSON.stringify(contents.mask),
    metadata: contents.metadata === undefined ? null : JSON.stringify(contents.metadata),
    fingerprint,
    fingerprint_expression: contents.fingerprintExpression ?? null,
    search_indexes:
      contents.searchIndexes.length === 0 ? null : JSON.stringify(contents.searchIndexes),
    expires_at: contents.expiry?.at ?? null,
    expires_offset: contents.expiry?.offsetMinutes ?? null,
  };
}

/** The data of a stored token. Its `Secret` is opened only by who holds a decision. */
export function openData(tenant: Tenant, row: Row<'tokens'>): Secret<Json> {
  const binding = { tenant: tenant.id, id: row.token_id, field: 'data' };
  const text = openText(tenant.keyring.sealing('data'), binding, row.data);
  return new Secret(JSON.parse(text.reveal()) as Json);
}

/** @throws VaultError `validation_failed` when the expression gives nothing to fingerprint. */
export function fingerprintOfContents(tenant: Tenant, contents: Contents): string {
  const expression = contents.fingerprintExpression ?? tokenTypes[contents.type].fingerprint;
  const value = evaluateText(expression, 'fingerprint_expression', contents);
  return fingerprintOf(tenant.keyring.secret('fingerprint'), contents.type, value);
}

/** The keyed terms under which the token is found, without repetition. */
export function searchTerms(
  tenant: Tenant,
  id: TokenId,
  contents: Contents,
): Row<'search_terms'>[] {
  const key = tenant.keyring.secret('search');
  const terms = contents.searchIndexes.map((expression, index) => {
    const value = evaluateText(expression, `search_indexes[${index}]`, contents);
    return Buffer.from(searchTermOf(key, searchField, value)).toString('base64url');
  });
  return [...new Set(terms)].map((term) => ({ tenant_id: tenant.id, token_id: id, term }));
}

/** One non-empty text out of an expression over the contents. */
export function evaluateText(expression: string, path: string, contents: Contents): string {
  const { data, metadata } = contents;
  const value = attemptValue(
    () =>
      evaluateExpression(compileExpression(expression, path), {
        data,
        ...(metadata && { metadata }),
      }),
    path,
  );
  if (value === undefined || value === null || value === '')
    throw invalid(path, 'must give a value');
  if (typeof value === 'object') return JSON.stringify(value);
  return String(value);
}

function attemptValue(run: () => Json | undefined, path: string): Json | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof ExpressionError) throw invalid(path, error.message);
    throw error;
  }
}
