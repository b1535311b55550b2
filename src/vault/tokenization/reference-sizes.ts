/** How much the targets of references have together, found out before any of them is read whole. */
import type { Reference } from '../../expressions/reading.ts';
import { parseTokenId, parseUuid, type TenantId, type TokenIntentId } from '../../lib/ids.ts';
import { bytesOfIntents, bytesOfTokens } from '../../store/queries/stored-sizes.ts';
import type { Store } from '../../store/store.ts';

/** Bytes that all tokens and token intents of one request may have, as they are stored. */
export const referencedBytesMax = 4_194_304;

/** Ids in one query. */
const idsAtOnce = 500;

/** The bytes of all sealed data, each target counted once. */
export async function referencedBytes(
  store: Store,
  tenant: TenantId,
  references: readonly Reference[],
): Promise<number> {
  const isIntent = ({ kind }: Reference) => kind === 'token_intent';
  const intents = references
    .filter(isIntent)
    .flatMap(({ id }) => parseUuid<TokenIntentId>(id) ?? []);
  const tokens = references
    .filter((reference) => !isIntent(reference))
    .flatMap(({ id }) => parseTokenId(id) ?? []);
  const found = await Promise.all([
    ...inParts(tokens).map((ids) => store.select(bytesOfTokens(tenant, ids))),
    ...inParts(intents).map((ids) => store.select(bytesOfIntents(tenant, ids))),
  ]);
  return found.flat().reduce((sum, { bytes }) => sum + Number(bytes), 0);
}

function inParts<T>(ids: readonly T[]): T[][] {
  const distinct = [...new Set(ids)];
  const parts: T[][] = [];
  for (let at = 0; at < distinct.length; at += idsAtOnce) {
    parts.push(distinct.slice(at, at + idsAtOnce));
  }
  return parts;
}
