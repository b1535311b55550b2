/** Removing expired token intents, and before that their expired card codes. */
import { systemEntry } from '../../rules/log-entries.ts';
import { rowsDue, sizedDue } from '../../store/queries/tenant-rows.ts';
import type { Row } from '../../store/tables.ts';
import { intentWithoutCode } from '../../tokens/intents/row.ts';
import { type JobTools, keysMax, workOff } from './batches.ts';
import { createRowOpening } from './opened-rows.ts';
import { batchMax } from './pace.ts';

/** Each intent that goes has its own `expire` entry in the same commit. One that was altered stays. */
export function expireTokenIntents(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store } = tools;
  const openRows = createRowOpening(store);
  return workOff(tools, stopping, {
    due: { table: 'token_intents', column: 'expires_at' },
    rowsMax: keysMax,
    find: (due) => store.scan(sizedDue('token_intents', 'expires_at', due)),
    decide: async (found, { tenant, now: at, quarantine }) => {
      const opened = await openRows({ tenant, quarantine }, { table: 'token_intents', found });
      const { done: token_intents, absent } = opened;
      return {
        change: { remove: { token_intents } },
        entries: token_intents.map(({ token_intent_id: id }) =>
          systemEntry({ tenant: tenant.id, at, entity: 'token_intent', id, operation: 'expire' }),
        ),
        count: token_intents.length,
        absent,
      };
    },
  });
}

/** The data is sealed again without its code. */
export function expireIntentCodes(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store, random } = tools;
  return workOff<Row<'token_intents'>>(tools, stopping, {
    due: { table: 'token_intents', column: 'code_expires_at' },
    rowsMax: batchMax,
    find: (due) => store.scan(rowsDue('token_intents', 'code_expires_at', due)),
    decide: async (rows, { tenant, now: at, quarantine }) => {
      const token_intents = rows.flatMap(
        (row) => quarantine.read(() => intentWithoutCode(tenant, row, random)) ?? [],
      );
      return {
        change: { replace: { token_intents } },
        entries: token_intents.map(({ token_intent_id: id }) =>
          systemEntry({
            tenant: tenant.id,
            at,
            entity: 'token_intent',
            id,
            operation: 'expire property',
          }),
        ),
        count: token_intents.length,
      };
    },
  });
}
