/** What the mark of a deleted tenant's row is bound to. */
import { provenText } from '../../rules/proven-row.ts';
import type { Row } from '../../store/tables.ts';

export function tombstoneOf(row: Omit<Row<'tenants'>, 'proof'>) {
  return { tenant: row.tenant_id, row: provenText('tenants', row) };
}
