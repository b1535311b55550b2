/** Removing tokens whose time is over. No reader has seen them since; this takes them off the disk. */
import type { Key, Row } from '../store/tables.ts';
import { systemEntry } from '../vault/logs/audit.ts';
import { isSome, termKeysOf } from '../vault/tokens/queries.ts';
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
  const found = isSome(tokens) ? await store.scan(termKeysOf(tokens)) : [];
  const terms = Map.groupBy(found, (term) => term.token_id);
  return tokens.map((token) => ({ token, terms: terms.get(token.token_id) ?? [] }));
}
