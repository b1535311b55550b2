/** Detects a waiting call that an attacker restored to an older version in order to run its code again. */

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

/** A server whose clock is behind may have logged its work with a time before that version of the row. */
const clockSkewMs = 5 * minute;

/** Entries held at a time. A caller who may read the result adds an entry about it with each read. */
const entriesMax = 500;

/** Blocks that one query reads: the log may be long, and other queries run in between. */
export const blocksPerQuery = 10_000;

/**
 * An attacker with write access to the database can restore any sealed row. But the attacker cannot remove log
 * entries about the row unnoticed, nor forge new ones: every start and end of a call has an entry with the version
 * that it created. The search takes as long as the call has waited in that version.
 * @throws VaultError `integrity` for an entry about the call that cannot be read.
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
    const [next] = await store.scan(blockEndAfter(slice), { tenant: tenant.id, name: 'calls' });
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

/** Entries about later versions are no older than this one, which precedes its due time by at most a lease. */
function searchedFrom({ created_at, due_at }: Row<'reactor_runs'>): Instant {
  const madeAt = Math.max(created_at, (due_at ?? created_at) - leaseMsMax);
  return parseInstant(Math.max(0, madeAt - clockSkewMs));
}
