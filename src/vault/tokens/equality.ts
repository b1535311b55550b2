/** When two tokens are equal to deduplication. */
import type { Row } from '../../store/tables.ts';
import { parseTokenType, tokenTypes } from '../../values/token-types.ts';
import type { PreparedToken } from './prepare.ts';

type Fingerprinted = Pick<Row<'tokens'>, 'type' | 'fingerprint' | 'fingerprint_expression'>;

/**
 * Equal in two tokens to deduplication: one expression gave both the same fingerprint. Whoever creates a
 * token chooses its expression, which may be constant, and so can give it the fingerprint of any value.
 */
export function equalityOf(token: Fingerprinted): string | undefined {
  const type = parseTokenType(token.type);
  if (token.fingerprint === null || type === undefined) return undefined;
  return `${token.fingerprint} ${token.fingerprint_expression ?? tokenTypes[type].fingerprint}`;
}

/** The same of a token that is to be created; `undefined` where it is not to be deduplicated. */
export function equalityWanted(prepared: PreparedToken): string | undefined {
  return prepared.deduplicates ? equalityOf(fingerprintedAs(prepared)) : undefined;
}

function fingerprintedAs({ contents, fingerprint }: PreparedToken): Fingerprinted {
  const fingerprint_expression = contents.fingerprintExpression ?? null;
  return { type: contents.type, fingerprint, fingerprint_expression };
}
