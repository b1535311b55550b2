/** Removing tokens whose time is over. No reader has seen them since; this takes them off the disk. */
import type { Store } from '../store/store.ts';
import type { Key, Row } from '../store/tables.ts';
import { systemEntry } from '../vault/logs/audit.ts';
import { type Due, type JobTools, keysMax, workOff } from './batches.ts';

/** Each token that goes has its own `expire` entry in the same commit. */
export function expireTokens(tools: JobTools, stopping: AbortSignal): Promise<number> {
  return workOff(tools, stopping, {
    rowsMax: keysMax,
    find: (due) => expiredTokens(tools, due),
    decide: async (expired, { id: tenant }, at) => ({
      change: {
        remove: {
          search_terms: expired.flatMap(({ terms }) => terms),
          tokens: expired.map(({ token }) => token),
        },
      },
      entries: expired.map(({ token: { token_id: id } }) =>
        systemEntry({ tenant, at, entity: 'token', id, operation: 'expire' }),
      ),
      count: expired.length,
    }),
  });
}

type ExpiredToken = Pick<Row<'tokens'>, 'tenant_id' | 'token_id' | 'version'>;

interface Expired {
  readonly token: ExpiredToken;
  readonly terms: readonly Key<'search_terms'>[];
}

/** Tokens before their terms: terms change with the version of their token, which the change names. */
async function expiredTokens({ store }: JobTools, due: Due): Promise<Expired[]> {
  const { tenant, until, rowsMax, skip } = due;
  const tokens = await store.scan((db) =>
    db
      .selectFrom('tokens')
      .select(['tenant_id', 'token_id', 'version'])
      .where('tenant_id', '=', tenant.id)
      .where('expires_at', '<=', until)
      .orderBy('expires_at')
      .limit(rowsMax)
      .offset(skip),
  );
  const terms = Map.groupBy(await termsOf(store, tokens), (term) => term.token_id);
  return tokens.map((token) => ({ token, terms: terms.get(token.token_id) ?? [] }));
}

/**
 * The keys of their search terms. A join would ask for less, but SQLite then reads all terms of the
 * tenant for each token.
 */
async function termsOf(
  store: Store,
  tokens: readonly ExpiredToken[],
): Promise<Key<'search_terms'>[]> {
  const [first] = tokens;
  if (first === undefined) return [];
  const ids = tokens.map((token) => token.token_id);
  return store.scan((db) =>
    db
      .selectFrom('search_terms')
      .select(['tenant_id', 'term', 'created_at', 'token_id'])
      .where('tenant_id', '=', first.tenant_id)
      .where('token_id', 'in', ids),
  );
}
