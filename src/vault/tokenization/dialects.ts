/** Where the public product answers otherwise than the interface document: one row per dialect. */
import type { ReferenceKind } from '../../expressions/references.ts';

interface Dialect {
  /** What `{{ <id> }}` stands for in a body that is a list of tokens and nothing else. */
  readonly listedToken: Exclude<ReferenceKind, 'token_intent'>;
}

const own: Dialect = { listedToken: 'token' };
const publicProduct: Dialect = { listedToken: 'data' };

const dialects: Readonly<Record<string, Dialect>> = { SVC: own };

/** @param prefix that of the header under which the caller authenticated. */
export function dialectOf(prefix: string): Dialect {
  return dialects[prefix.toUpperCase()] ?? publicProduct;
}
