/** Which groups of tokens exist, and how common a search term is. A list uses both to choose its index. */
import { sql } from 'kysely';
import type { TenantId } from '../../base/ids.ts';
import type { Query } from '../store.ts';
import { storedTenant, storedTerm } from './stored.ts';
import { afterPrefix, matches, type TextPattern } from './text-patterns.ts';
import type { TokenGroup } from './token-sources.ts';

export interface TokenGroupQuery {
  readonly tenant: TenantId;
  readonly container: TextPattern;
  readonly limit: number;
}

/**
 * The groups whose containers match, each found by a few steps in the index, however many tokens
 * are in it: the next one is that of the next type in the container, or the first of the next container.
 */
export function tokenGroupsOf({ tenant, container, limit }: TokenGroupQuery): Query<TokenGroup> {
  const all = sql`from tokens where tenant_id = ${storedTenant(tenant)}`;
  const first = sql`${all} and ${matches(sql.ref('container'), container)}`;
  const nextType = sql`(select type ${all} and container = token_group.container and type > token_group.type
    order by type limit 1)`;
  // Without the lower bound of the pattern: SQLite would begin to look there and not behind the group.
  const end = container.exact ? container.text : afterPrefix(container.text);
  const inRange = end === undefined ? sql`` : sql`and container < ${end}`;
  const next = sql`${all} and container > token_group.container ${inRange} order by container, type limit 1`;
  return (db) => ({
    compile: () =>
      sql<TokenGroup>`with recursive token_group(container, type) as (
        select * from (select container, type ${first} order by container, type limit 1) as first
        union all
        select case when ${nextType} is null then (select container ${next}) else token_group.container end,
          coalesce(${nextType}, (select type ${next}))
        from token_group where token_group.container is not null
      ) select container, type from token_group where container is not null limit ${sql.lit(limit)}`.compile(
        db,
      ),
  });
}

/** How many tokens are found under a term, counted no further than `limit`. */
export function occurrencesOf(
  { tenant, term }: { readonly tenant: TenantId; readonly term: string },
  limit: number,
): Query<{ count: number }> {
  return (db) =>
    db
      .selectFrom(
        db
          .selectFrom('search_terms')
          .select('token_id')
          .where('tenant_id', '=', storedTenant(tenant))
          .where('term', '=', storedTerm(term))
          .limit(limit)
          .as('occurrence'),
      )
      .select((eb) => eb.fn.countAll<number>().as('count'));
}
