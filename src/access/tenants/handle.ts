/** Handles: the operator's own names for tenants, which the operator's commands know them by. */
import { invalid } from '../../base/errors.ts';
import { parseUuid, type TenantId } from '../../base/ids.ts';
import type { Row } from '../../store/tables.ts';

const handleLengthMax = 200;

/** What remains of a deleted tenant is stored under a name that begins like this. */
export const deletedPrefix = 'deleted ';

const form = /^[^\p{C}\p{Zl}\p{Zp}]+$/u;

/**
 * A handle for a new tenant. A handle in the form of an id could be taken for another tenant's id.
 * @throws VaultError `validation_failed` when the string cannot be a handle.
 */
export function parseHandle(text: string): string {
  if (text.length > handleLengthMax || !form.test(text) || text.trim() !== text) {
    throw invalid(
      'name',
      `must have 1 to ${handleLengthMax} characters, without control characters and without spaces at its ends`,
    );
  }
  if (parseUuid(text) !== undefined) throw invalid('name', 'must not be a UUID');
  if (text.startsWith(deletedPrefix)) {
    throw invalid('name', `must not begin with "${deletedPrefix}"`);
  }
  return text;
}

/** A string that matches two tenants. */
export type Ambiguous = 'ambiguous';

/**
 * Which of the tenants an operator means by an id or a handle. Display names are not looked at: a
 * tenant may give itself the name of another. An id need not be among the rows: its log remains.
 */
export function tenantMeant(
  rows: readonly Pick<Row<'tenants'>, 'tenant_id' | 'name'>[],
  text: string,
): TenantId | Ambiguous | undefined {
  const byHandle = rows.find(({ name }) => name === text)?.tenant_id;
  const id = parseUuid<TenantId>(text);
  // Only a row that was written outside the vault can have such a handle.
  if (byHandle !== undefined && id !== undefined && byHandle !== id) return 'ambiguous';
  return byHandle ?? id;
}
