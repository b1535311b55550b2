/** Rotations and keys as they are shown. */
import { formatTimestamp } from '../../base/dates.ts';
import type { Row } from '../../store/tables.ts';

const states = {
  waiting: 'waiting',
  announced: 'introducing',
  sealing: 'sealing',
  finished: 'finished',
} as const;

/** The view in the API, and in the command line's JSON. */
export function viewRotation(row: Row<'key_rotations'>) {
  const { purpose, tenant_id, phase, is_paused, rows_done, rows_total, unreadable } = row;
  return {
    purpose,
    tenant_id,
    state: phase !== 'finished' && is_paused === 1 ? ('paused' as const) : states[phase],
    rows_done,
    ...(rows_total !== null && { rows_total }),
    unreadable,
    started_at: formatTimestamp(row.started_at),
    ...(row.finished_at !== null && { finished_at: formatTimestamp(row.finished_at) }),
  };
}
