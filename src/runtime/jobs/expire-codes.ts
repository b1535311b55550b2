/** Removing expired card codes from the sealed data. The rest of the token stays. */
import { systemEntry } from '../../rules/log-entries.ts';
import { rowsDue } from '../../store/queries/tenant-rows.ts';
import { rowWithoutCode } from '../../tokens/contents/sealed-row.ts';
import { type JobTools, workOff } from './batches.ts';
import { batchMax } from './pace.ts';

/**
 * The data is sealed again without its code, from which neither fingerprint nor search terms are made.
 * It does not count as a change of the token: `modified_at` and `modified_by` stay.
 */
export function expireCodes(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store, random } = tools;
  return workOff(tools, stopping, {
    due: { table: 'tokens', column: 'code_expires_at' },
    rowsMax: batchMax,
    find: (due) => store.scan(rowsDue('tokens', 'code_expires_at', due)),
    decide: async (rows, { tenant, now, quarantine }) => {
      const updated = rows.flatMap(
        (row) => quarantine.read(() => rowWithoutCode(tenant, row, { now, random })) ?? [],
      );
      return {
        change: { replace: { tokens: updated } },
        entries: updated.map(({ token_id: id }) =>
          systemEntry({
            tenant: tenant.id,
            at: now,
            entity: 'token',
            id,
            operation: 'expire property',
          }),
        ),
        count: updated.length,
      };
    },
  });
}
