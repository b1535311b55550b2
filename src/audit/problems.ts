/** Rows that requests met and that were altered outside the vault, as the log has them. */
import { day, instantAfter } from '../base/clock.ts';
import { alteredOutside } from '../rules/log-entries.ts';
import { type ProblemCheck, problemsMax } from '../rules/tenant-problems.ts';
import type { Store } from '../store/store.ts';
import { findLogs } from './find.ts';

const daysLookedAt = 30;

export const alteredRows: ProblemCheck<{ readonly store: Store }> = {
  permission: 'log:read',
  find: async ({ store }, { id: tenant }, now) => {
    const found = await findLogs(store, {
      tenant,
      entity_type: undefined,
      entity_id: undefined,
      result: 'denied',
      oldest: instantAfter(now, -daysLookedAt * day),
      until: undefined,
      after: undefined,
      skip: 0,
      limit: problemsMax,
      where: ({ message }) => message.includes(alteredOutside),
    });
    const rows = new Map(found.map((entry) => [`${entry.entity_type} ${entry.entity_id}`, entry]));
    return [...rows.values()].map(({ entity_type, entity_id }) => ({
      kind: 'altered_row',
      severity: 'problem',
      message: `In the last ${daysLookedAt} days, a request met a row that was ${alteredOutside}.`,
      advice:
        'Find out who writes to the database. The command "strongroom logs verify --state" names all altered rows.',
      entity_type,
      entity_id,
    }));
  },
};
