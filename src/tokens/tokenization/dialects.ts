/** Where the public product differs from the interface document: one row per dialect. */
import type { ReferenceKind } from '../../expressions/reading.ts';

interface Dialect {
  /** What replaces `{{ <id> }}` in a body that is only a list of tokens. */
  readonly listedToken: Exclude<ReferenceKind, 'token_intent'>;
}

const own: Dialect = { listedToken: 'token' };
const publicProduct: Dialect = { listedToken: 'data' };

const dialects: Readonly<Record<string, Dialect>> = { SVC: own };

/** @param prefix that of the header under which the caller authenticated. */
export function dialectOf(prefix: string): Dialect {
  return dialects[prefix.toUpperCase()] ?? publicProduct;
}
