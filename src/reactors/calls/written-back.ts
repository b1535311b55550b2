/** Whether a waiting call is an older version of its row, which somebody wrote back to have its code run again. */

import { findLogs, type LogPosition, logPositionOf } from '../../audit/find.ts';
import { isOwnBlock } from '../../audit/proving.ts';
import { type Instant, latestInstant, minute, parseInstant } from '../../base/clock.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { LogBlock } from '../../store/log-chain/block.ts';
import type { PlacedEntry } from '../../store/log-chain/entries.ts';
import { blockEndAfter } from '../../store/queries/logs.ts';
import { marksOfEntry } from '../../store/row-states.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { leaseMsMax } from './called-reactor.ts';

/** A server whose clock is behind may have logged what it did before that version of the row was made. */
const clockSkewMs = 5 * minute;

/** What is held at a time: whoever may read the result of a call adds an entry about it with each read. */
const entriesMax = 500;

/** What one query goes through: the log may be long, and the queries of others come in between. */
export const blocksPerQuery = 10_000;

/**
 * Whoever can write to the database can put any sealed row back, but not take what was logged about it out of the
 * log unnoticed, nor add to what the vault wrote there: every begin and end of a call has an entry with the version
 * that it made. The search takes as long as the call has waited in that version.
 * @throws VaultError `integrity` for an entry about it that cannot be read.
 */
export async function isWrittenBack(
  store: Pick<Store, 'select' | 'scan'>,
  tenant: Pick<Tenant, 'id' | 'keyring'>,
  row: Row<'reactor_runs'>,
): Promise<boolean> {
  const { run_id, version } = row;
  const from = searchedFrom(row);
  const isLater = (entry: PlacedEntry) =>
    marksOfEntry(entry).some((mark) => {
      if (mark.table !== 'reactor_runs' || mark.id !== run_id) return false;
      return mark.sign === '-' ? mark.version >= version : mark.version > version;
    });
  for (let until = latestInstant; ; ) {
    const slice = { tenant: tenant.id, from, until, skip: blocksPerQuery };
    const [next] = await store.scan(blockEndAfter(slice));
    const oldest = next?.last_at ?? from;
    const about = { tenant: tenant.id, entity_type: 'reactor_run', entity_id: run_id };
    const isOwn = (block: LogBlock) => isOwnBlock(tenant, block);
    const search = { ...about, oldest, until, skip: 0, limit: entriesMax, isOwn };
    for (let after: LogPosition | undefined; ; ) {
      const entries = await findLogs(store, { ...search, after });
      if (entries.some(isLater)) return true;
      const last = entries.at(-1);
      if (last === undefined || entries.length < entriesMax) break;
      after = logPositionOf(last);
    }
    if (next === undefined) return false;
    until = oldest;
  }
}

/** Entries about later versions are no older than this one, which was made before it is due by a lease at most. */
function searchedFrom({ created_at, due_at }: Row<'reactor_runs'>): Instant {
  const madeAt = Math.max(created_at, (due_at ?? created_at) - leaseMsMax);
  return parseInstant(Math.max(0, madeAt - clockSkewMs));
}
