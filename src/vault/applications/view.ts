/** An application as callers see it. */
import { formatTimestamp } from '../../lib/dates.ts';
import type { Row } from '../../store/tables.ts';
import { type NewKey, viewKey } from './api-key-row.ts';
import { accessOf } from './row.ts';

/** Without the text of any key. */
export function viewApplication(
  row: Row<'applications'>,
  keys: readonly Row<'api_keys'>[],
): object {
  const own = keys.filter((key) => key.application_id === row.application_id);
  return withKeys(
    row,
    own.map((key) => viewKey(key)),
  );
}

/** The response to its creation: the one time that the text of its first key is shown. */
export function viewNewApplication(row: Row<'applications'>, key: NewKey | undefined): object {
  if (key === undefined) return withKeys(row, []);
  return { ...withKeys(row, [viewKey(key.row, key.text)]), key: key.text };
}

function withKeys(row: Row<'applications'>, keys: readonly object[]): object {
  return {
    id: row.application_id,
    tenant_id: row.tenant_id,
    name: row.name,
    type: row.type,
    keys,
    ...accessOf(row),
    ...(row.created_by !== null && { created_by: row.created_by }),
    created_at: formatTimestamp(row.created_at),
    ...(row.modified_at !== null && {
      ...(row.modified_by !== null && { modified_by: row.modified_by }),
      modified_at: formatTimestamp(row.modified_at),
    }),
  };
}
