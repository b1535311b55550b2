/** What was altered outside the vault, as the log has it: rows that requests met, and the log itself. */
import { day, instantAfter } from '../base/clock.ts';
import { alteredOutside } from '../rules/log-entries.ts';
import { type ProblemCheck, problemsMax } from '../rules/tenant-problems.ts';
import type { Store } from '../store/store.ts';
import { findLogs } from './find.ts';
import { newestOwnEntry } from './newest-entry.ts';
import { lastVerified } from './verified.ts';

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

/** What a verification has found, which each entry of it says once. */
export const alteredLog: ProblemCheck<{ readonly store: Store }> = {
  permission: 'log:read',
  find: async ({ store }, tenant, now) => {
    const entry = await newestOwnEntry(store, tenant, {
      entity_type: 'log_checkpoint',
      entity_id: undefined,
      operation: 'verify',
      result: 'failed',
      now,
    });
    if (entry === undefined || entry.created_at < now - daysLookedAt * day) return [];
    const { entity_type, entity_id } = entry;
    return [
      {
        kind: 'altered_log',
        severity: 'problem',
        message:
          `In the last ${daysLookedAt} days, a verification found that the log before checkpoint ${entity_id} ` +
          'is not as it was written.',
        advice:
          'Find out who writes to the database. The command "strongroom logs verify" names all altered entries.',
        entity_type,
        entity_id,
      },
    ];
  },
};

/** What was signed long ago, and that no verification has read. */
export const unverifiedLog: ProblemCheck<{ readonly store: Store }> = {
  permission: 'log:read',
  find: async ({ store }, tenant, now) => {
    const seq = ((await lastVerified(store, tenant, now))?.to ?? 0) + 1;
    const signed = await store.get('checkpoints', { tenant_id: tenant.id, seq });
    if (signed === undefined || signed.created_at >= now - daysLookedAt * day) return [];
    return [
      {
        kind: 'unverified_log',
        severity: 'warning',
        message: `The log from checkpoint ${seq} on has waited for a verification for more than ${daysLookedAt} days.`,
        advice:
          'Open the page of the log in the console, or send GET /logs/verification once a day. The command ' +
          '"strongroom logs verify" reads the whole log.',
        entity_type: 'log_checkpoint',
        entity_id: String(seq),
      },
    ];
  },
};
