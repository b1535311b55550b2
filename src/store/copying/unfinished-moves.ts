/** Which tenants of a vault are on their way to another vault, or from one. */
import { sql } from 'kysely';
import type { TenantId } from '../../base/ids.ts';
import { openReadOnly } from '../open/read-only.ts';
import { outgoingCopy } from '../outgoing-copy.ts';
import { incomingCopy } from '../unfinished-restore.ts';
import { selectTable } from './copy-database.ts';
import type { DatabaseAddress } from './source.ts';

type CopyTables = {
  readonly [outgoingCopy]: { readonly tenant: TenantId | null; readonly opened_at: number | null };
  readonly [incomingCopy]: { readonly tenant: TenantId };
};

/** Only a database of which, or into which, a copy was ever made has these tables. */
export async function tenantsMoving(address: DatabaseAddress): Promise<ReadonlySet<TenantId>> {
  const isPostgres = 'databaseUrl' in address;
  const store = await openReadOnly(isPostgres ? address.databaseUrl : address.dataDir);
  const has = async (table: keyof CopyTables) => {
    const found = sql.raw(`(${selectTable(isPostgres ? 'postgres' : 'sqlite', table)})`);
    return (await store.select((db) => db.selectFrom(found.as('found')).selectAll())).length > 0;
  };
  try {
    const leaving = (await has(outgoingCopy))
      ? await store.select((db) =>
          db
            .withTables<CopyTables>()
            .selectFrom(outgoingCopy)
            .select('tenant')
            .where('opened_at', 'is', null),
        )
      : [];
    const coming = (await has(incomingCopy))
      ? await store.select((db) =>
          db.withTables<CopyTables>().selectFrom(incomingCopy).select('tenant').distinct(),
        )
      : [];
    return new Set([...leaving, ...coming].flatMap(({ tenant }) => tenant ?? []));
  } finally {
    await store.close();
  }
}
