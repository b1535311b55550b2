/** One pass through a tenant's rows: what is under earlier keys is sealed again, page by page. */
import { rowsUnderEarlier } from '../../access/key-rotations/key-list.ts';
import { systemEntry } from '../../rules/log-entries.ts';
import { createQuarantine } from '../../rules/quarantine.ts';
import type { Tenant } from '../../rules/tenant.ts';
import {
  rowsUnderEarlierKeys,
  type SealedName,
  sealedColumns,
  sealedNames,
} from '../../store/queries/key-versions.ts';
import type { RowFromStore } from '../../store/stored-row.ts';
import { type AnyRow, type Key, shapes } from '../../store/tables.ts';
import type { JobTools } from './batches.ts';
import { createGentlePace, type Pace, systemTimer } from './pace.ts';
import { type Resealed, resealRows } from './reseal-rows.ts';

/** Rows that are read together; a commit takes some of them. */
const rowsMax = 500;

export interface SealingPass {
  readonly tenant: Tenant;
  /** Called after each commit, with its rows; false ends the pass. */
  readonly onPage: (rows: number) => Promise<boolean>;
}

export interface PassResult {
  /** `whole`: every row of the tenant was looked at. */
  readonly outcome: 'whole' | 'stopped';
  readonly resealed: number;
  /** Rows that others changed or removed meanwhile. */
  readonly changed: number;
  /** Rows that were altered outside the vault, which stay as they are. */
  readonly unreadable: number;
}

/** How many rows there are under earlier keys. */
export function countOutdated({ store }: JobTools, tenant: Tenant): Promise<number> {
  return rowsUnderEarlier(store, tenant.id, tenant.keyring);
}

interface PassState {
  resealed: number;
  changed: number;
  unreadable: number;
}

/** Rows that change meanwhile are left for the next pass. */
export async function sealOutdated(
  tools: JobTools,
  stopping: AbortSignal,
  pass: SealingPass,
): Promise<PassResult> {
  const state: PassState = { resealed: 0, changed: 0, unreadable: 0 };
  const { store, timer = systemTimer } = tools;
  const commits = () => store.epochs.now('commits');
  const pace = createGentlePace({ stopping, timer, commits });
  for (const table of sealedNames) {
    const isWhole = await sealTable(tools, { table, pass, state, pace, stopping });
    if (!isWhole) return { ...state, outcome: 'stopped' };
  }
  return { ...state, outcome: 'whole' };
}

interface TablePass {
  readonly table: SealedName;
  readonly pass: SealingPass;
  readonly state: PassState;
  readonly pace: Pace;
  readonly stopping: AbortSignal;
}

async function sealTable(tools: JobTools, tablePass: TablePass): Promise<boolean> {
  const { table, pass, state, pace, stopping } = tablePass;
  const { tenant, onPage } = pass;
  const version = tenant.keyring.activeVersion(sealedColumns[table].purpose);
  let after: AnyRow | undefined;
  for (;;) {
    const query = { tenant: tenant.id, version, after, rowsMax };
    const found = await tools.store.scan(rowsUnderEarlierKeys(table, query), 'vault');
    for (let at = 0; at < found.length; ) {
      if (stopping.aborted) return false;
      const page = found.slice(at, at + pace.batch);
      at += page.length;
      const rows = await wholeRows(tools, table, page);
      const before = state.resealed;
      await sealPage(tools, { tenant, table, state }, rows as readonly RowFromStore<SealedName>[]);
      await pace.rest(page.length);
      if (!(await onPage(state.resealed - before))) return false;
    }
    after = found.at(-1);
    if (found.length < rowsMax) return true;
  }
}

/** Large rows are read one by one. */
async function wholeRows(
  { store }: JobTools,
  table: SealedName,
  page: readonly AnyRow[],
): Promise<readonly AnyRow[]> {
  const { column } = sealedColumns[table];
  const whole: AnyRow[] = [];
  for (const row of page) {
    if (row[column] !== null) {
      whole.push(row);
      continue;
    }
    const key = Object.fromEntries(shapes[table].key.map((name) => [name, row[name] ?? null]));
    const read = await store.get(table, key as Key<SealedName>);
    if (read) whole.push(read as AnyRow);
  }
  return whole;
}

interface PageOfTable {
  readonly tenant: Tenant;
  readonly table: SealedName;
  readonly state: PassState;
  /** The tokens no longer represent their values to deduplication. */
  readonly withoutTarget?: true | undefined;
}

/** After a conflict in halves, until the rows that have changed are alone. */
async function sealPage(
  tools: JobTools,
  page: PageOfTable,
  rows: readonly RowFromStore<SealedName>[],
): Promise<void> {
  const { store, clock, random } = tools;
  const { tenant, table, state } = page;
  const quarantine = createQuarantine(() => {
    state.unreadable += 1;
  });
  const unreadable = state.unreadable;
  const guarded = { ...tenant, quarantine };
  const resealing = { store, tenant: guarded, random, withoutTarget: page.withoutTarget };
  const { change, count }: Resealed = await resealRows(table, resealing, rows);
  if (count === 0) return;
  const fact = { entity: 'keyring', id: tenant.id, operation: 'reseal' } as const;
  const entry = systemEntry({ tenant: tenant.id, at: clock.now(), ...fact });
  const { conflict } = await store.commit({ ...change, entries: [entry] });
  if (conflict === undefined) {
    state.resealed += count;
    return;
  }
  if (rows.length === 1) {
    // Another token stands for the value under the new key already.
    const isRepresented = conflict === 'tokens.fingerprint' && !page.withoutTarget;
    if (isRepresented) await sealPage(tools, { ...page, withoutTarget: true }, rows);
    else state.changed += 1;
    return;
  }
  // They are found again in the halves.
  state.unreadable = unreadable;
  const half = Math.ceil(rows.length / 2);
  await sealPage(tools, page, rows.slice(0, half));
  await sealPage(tools, page, rows.slice(half));
}
