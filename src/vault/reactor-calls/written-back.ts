/** Whether a waiting call is an older version of its row, which somebody wrote back to have its code run again. */
import { hour, parseInstant } from '../../lib/clock.ts';
import { marksOfEntry } from '../../store/row-states.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { findLogs } from '../logs/find.ts';

/** A server whose clock is behind may have logged what it did before the call was made. */
const clockSkewMs = hour;

/** The newest of them name the newest version. */
const entriesMax = 50;

/**
 * Whoever can write to the database can put any sealed row back, but not take what was logged about it out of the
 * log unnoticed: every begin and end of a call has an entry with the version that it made. The search takes as
 * long as the call has waited.
 * @throws VaultError `integrity` for an entry about it that cannot be read.
 */
export async function isWrittenBack(
  store: Pick<Store, 'select' | 'scan'>,
  { tenant_id: tenant, run_id, version, created_at }: Row<'reactor_runs'>,
): Promise<boolean> {
  const entries = await findLogs(store, {
    tenant,
    entity_type: 'reactor_run',
    entity_id: run_id,
    oldest: parseInstant(Math.max(0, created_at - clockSkewMs)),
    until: undefined,
    after: undefined,
    skip: 0,
    limit: entriesMax,
  });
  return entries.flatMap(marksOfEntry).some((mark) => {
    if (mark.table !== 'reactor_runs' || mark.id !== run_id) return false;
    return mark.sign === '-' ? mark.version >= version : mark.version > version;
  });
}
