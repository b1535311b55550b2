/** Sealing rows again under the active keys: one row for each table with a sealed column. */
import { resealedClientKey } from '../../access/client-keys/row.ts';
import { createPause } from '../../base/pauses.ts';
import type { Random } from '../../base/random.ts';
import { resealedReply } from '../../http/idempotency/stored-reply.ts';
import { resealedApproval } from '../../proxies/approvals/row.ts';
import { resealedProxy } from '../../proxies/row.ts';
import { resealedReactor } from '../../reactors/resource.ts';
import { resealBound } from '../../rules/bound-row.ts';
import { openerOf, type Resealer } from '../../rules/openings.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Change } from '../../store/change.ts';
import type { SealedName } from '../../store/queries/key-versions.ts';
import type { Store } from '../../store/store.ts';
import type { RowFromStore } from '../../store/stored-row.ts';
import { resealIntents, resealTokens } from '../../tokens/reseal.ts';
import { resealedEvent } from '../../webhooks/events/event-row.ts';
import { resealedWebhook } from '../../webhooks/resource.ts';

/** A part of a change, and how many rows it brings up to date. */
export interface Resealed {
  readonly change: Pick<Change, 'insert' | 'replace' | 'reseal' | 'refingerprint' | 'remove'>;
  readonly count: number;
}

export interface RowsToReseal {
  readonly store: Pick<Store, 'select'>;
  /** Rows that were altered outside the vault go to its quarantine, and stay as they are. */
  readonly tenant: Tenant;
  readonly random: Random;
  readonly withoutTarget?: true | undefined;
}

type ResealRows<T extends SealedName> = (
  resealing: RowsToReseal,
  rows: readonly RowFromStore<T>[],
) => Promise<Resealed>;

/** The rows in their next version. None of them has changed for a caller. */
export function resealRows<T extends SealedName>(
  table: T,
  resealing: RowsToReseal,
  rows: readonly RowFromStore<T>[],
): Promise<Resealed> {
  return (tables[table] as ResealRows<T>)(resealing, rows);
}

/** A table that is not in this list does not compile. */
const tables: { readonly [T in SealedName]: ResealRows<T> } = {
  tokens: (resealing, rows) => resealTokens(resealing, resealerOf(resealing), rows),
  token_intents: (resealing, rows) => resealIntents(resealing, resealerOf(resealing), rows),
  reactor_runs: each(
    (resealer, found) => {
      const { row, sealed: body } = resealBound(resealer, 'reactor_runs', found);
      return { ...row, body, version: row.version + 1, was_version: row.version };
    },
    (reactor_runs) => ({ reseal: { reactor_runs } }),
  ),
  events: each(
    (resealer, row) => ({ ...row, body: resealedEvent(resealer, row), was_body: row.body }),
    (events) => ({ reseal: { events } }),
  ),
  proxies: each(resealedProxy, (proxies) => ({ replace: { proxies } })),
  reactors: each(resealedReactor, (reactors) => ({ replace: { reactors } })),
  webhooks: each(resealedWebhook, (webhooks) => ({ replace: { webhooks } })),
  client_keys: each(resealedClientKey, (client_keys) => ({ replace: { client_keys } })),
  approvals: each(resealedApproval, (approvals) => ({ replace: { approvals } })),
  replies: each(resealedReply, (replies) => ({ replace: { replies } })),
};

function resealerOf({ tenant, random }: RowsToReseal): Resealer {
  return { ...openerOf('rotate tenant keys', tenant), random };
}

/** Rows that are sealed again one by one. */
function each<T extends SealedName, R>(
  reseal: (resealer: Resealer, row: RowFromStore<T>) => R,
  changeOf: (rows: readonly R[]) => Resealed['change'],
): ResealRows<T> {
  return async (resealing, rows) => {
    const resealer = resealerOf(resealing);
    const again: R[] = [];
    const pause = createPause();
    for (const row of rows) {
      const one = resealing.tenant.quarantine.read(() => ({ row: reseal(resealer, row) }));
      if (one) again.push(one.row);
      await pause();
    }
    return { change: changeOf(again), count: again.length };
  };
}
