/** Values that queries compare with columns that hold them in another form; see `stored-form.ts`. */
import { type RawBuilder, sql } from 'kysely';
import type { TenantId } from '../../base/ids.ts';
import { storedForm, tenantNumber } from '../stored-form.ts';
import { kindOf, type SqlValue, type Table } from '../tables.ts';

/** Of tokens, token intents, search terms, stored responses and events. */
export function storedTenant(tenant: TenantId): RawBuilder<TenantId> {
  return sql`${tenantNumber(tenant)}`;
}

export function storedId<Id extends string>(id: Id): RawBuilder<Id> {
  return sql`${storedForm('id', id)}`;
}

export function storedTerm(term: string): RawBuilder<string> {
  return sql`${storedForm('digest', term)}`;
}

/** Of a column that is known by its name alone. */
export function storedIn<V extends SqlValue>(
  table: Table,
  column: string,
  value: string,
): RawBuilder<V> {
  return sql`${storedForm(kindOf(table, column), value)}`;
}
