/** How much the targets of references have together, found out before any of them is read whole. */
import { sql } from 'kysely';
import type { Reference } from '../../expressions/references.ts';
import { parseTokenId, parseUuid, type TenantId, type TokenIntentId } from '../../lib/ids.ts';
import type { Store } from '../../store/store.ts';

/** Bytes that all tokens and token intents of one request may have, as they are stored. */
export const referencedBytesMax = 4_194_304;

/** Ids in one query. */
const idsAtOnce = 500;

/** The bytes of all sealed data; neither engine reads a value for its length. */
export async function referencedBytes(
  store: Store,
  tenant: TenantId,
  references: readonly Reference[],
): Promise<number> {
  const tokens = new Set<string>();
  const intents = new Set<string>();
  for (const { kind, id } of references) {
    const known = kind === 'token_intent' ? parseUuid<TokenIntentId>(id) : parseTokenId(id);
    if (known) (kind === 'token_intent' ? intents : tokens).add(known);
  }
  const sizes = await Promise.all([
    ...inParts([...tokens]).map((ids) => sizeOfTokens(store, tenant, ids)),
    ...inParts([...intents]).map((ids) => sizeOfIntents(store, tenant, ids)),
  ]);
  return sizes.reduce((sum, size) => sum + size, 0);
}

function inParts(ids: readonly string[]): string[][] {
  const parts: string[][] = [];
  for (let at = 0; at < ids.length; at += idsAtOnce) parts.push(ids.slice(at, at + idsAtOnce));
  return parts;
}

const bytes = sql<number>`coalesce(sum(octet_length(data)), 0)`.as('bytes');

async function sizeOfTokens(store: Store, tenant: TenantId, ids: string[]): Promise<number> {
  const [found] = await store.select((db) =>
    db
      .selectFrom('tokens')
      .select(bytes)
      .where('tenant_id', '=', tenant)
      .where(sql<boolean>`token_id in (${sql.join(ids)})`),
  );
  return Number(found?.bytes ?? 0);
}

async function sizeOfIntents(store: Store, tenant: TenantId, ids: string[]): Promise<number> {
  const [found] = await store.select((db) =>
    db
      .selectFrom('token_intents')
      .select(bytes)
      .where('tenant_id', '=', tenant)
      .where(sql<boolean>`token_intent_id in (${sql.join(ids)})`),
  );
  return Number(found?.bytes ?? 0);
}
