/** Rotations and keys as they are shown. */
import { formatTimestamp } from '../../base/dates.ts';
import type { Keyring } from '../../keys/keyring.ts';
import type { Row } from '../../store/tables.ts';
import { keyringStep } from './keyring-step.ts';

const states = {
  waiting: 'waiting',
  announced: 'introducing',
  sealing: 'sealing',
  finished: 'finished',
} as const;

/**
 * The view in the API, and in the command line's JSON.
 * @param keyring a rotation that is not finished in it is shown so, whatever its row says.
 */
export function viewRotation(row: Row<'key_rotations'>, keyring: Keyring) {
  const { purpose, tenant_id, is_paused, rows_done, rows_total, unreadable } = row;
  const step = keyringStep(keyring);
  const phase = step?.purpose === purpose ? step.phase : row.phase;
  return {
    purpose,
    tenant_id,
    state: phase !== 'finished' && is_paused === 1 ? ('paused' as const) : states[phase],
    rows_done,
    ...(rows_total !== null && { rows_total }),
    unreadable,
    started_at: formatTimestamp(row.started_at),
    ...(phase === 'finished' &&
      row.finished_at !== null && { finished_at: formatTimestamp(row.finished_at) }),
  };
}
