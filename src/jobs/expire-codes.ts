/** Removing card codes whose time is over from the sealed data. The rest of the token stays. */

import { newEvaluation } from '../expressions/evaluation.ts';
import type { Instant } from '../lib/clock.ts';
import type { Row } from '../store/tables.ts';
import { rowsDue } from '../store/tenant-rows.ts';
import { systemEntry } from '../vault/logs/audit.ts';
import type { Tenant } from '../vault/tenants/tenants.ts';
import { contentsOfRow } from '../vault/tokens/contents.ts';
import { replacementOf } from '../vault/tokens/queries.ts';
import { openData, rowWithoutCode } from '../vault/tokens/row.ts';
import { remainingTerms } from '../vault/tokens/search-terms.ts';
import { type JobTools, undamaged, workOff } from './batches.ts';
import { batchMax } from './pace.ts';

/**
 * The data is sealed anew without its code, and search terms that came from the code go with it. It is
 * no change of the token by anybody: fingerprint, `modified_at` and `modified_by` stay.
 */
export function expireCodes(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store, random } = tools;
  return workOff(tools, stopping, {
    rowsMax: batchMax,
    find: (due) => store.scan(rowsDue('tokens', 'code_expires_at', due)),
    decide: async (rows, tenant, now) => {
      const { done: replacements, damage } = undamaged(rows, (row) => ({
        row,
        updated: rowWithoutCode(tenant, row, { now, random }),
        terms: termsLeft(tenant, row, now),
      }));
      const changes = await Promise.all(replacements.map((one) => replacementOf(store, one)));
      return {
        change: {
          remove: { search_terms: changes.flatMap(({ remove }) => remove?.search_terms ?? []) },
          replace: { tokens: replacements.map(({ updated }) => updated) },
        },
        entries: replacements.map(({ row: { token_id: id } }) =>
          systemEntry({
            tenant: tenant.id,
            at: now,
            entity: 'token',
            id,
            operation: 'expire property',
          }),
        ),
        count: replacements.length,
        damage,
      };
    },
  });
}

function termsLeft(tenant: Tenant, row: Row<'tokens'>, now: Instant): Row<'search_terms'>[] {
  const contents = contentsOfRow(row, openData(tenant, row, now).reveal());
  return remainingTerms(tenant, row, { contents, evaluation: newEvaluation() });
}
