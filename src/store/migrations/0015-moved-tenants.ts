/** Migration 15: a tenant may be served by another vault. */
import type { ColumnTypes } from './column-types.ts';

export function movedTenants({ integer }: ColumnTypes): string[] {
  return [`alter table tenants add column away_until ${integer}`];
}
