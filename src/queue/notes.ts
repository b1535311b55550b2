/**
 * Notes in `due_work`: small rows that say from when on something of a tenant's queue is due. A look reads them, and
 * then the queues of these tenants one by one, so no query takes the rows of several tenants. Whoever adds work commits
 * a note with it, unless one is known to be there. A note is removed by the holder of the tenant's lease alone, if
 * nothing was due after the note was read.
 */
import { type Instant, instantAfter } from '../base/clock.ts';
import type { TenantId } from '../base/ids.ts';
import { workOfTenant } from '../store/queries/due.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import type { Work } from '../store/work-tables.ts';

export interface QueueOfTenant {
  readonly tenant: TenantId;
  readonly work: Work;
}

/** A note that is due now, to be inserted with the work that it announces. No stored note is equal to it. */
export async function newNote(
  store: Pick<Store, 'select'>,
  { tenant, work }: QueueOfTenant,
  now: Instant,
): Promise<Row<'due_work'>> {
  const taken = new Set((await notesOf(store, { tenant, work })).map(({ due_at }) => due_at));
  let due_at = now;
  while (taken.has(due_at)) due_at = instantAfter(due_at, -1);
  return { tenant_id: tenant, work, due_at };
}

/** Read before the work itself: work that is committed afterwards has a note that these do not include. */
export function notesOf(
  store: Pick<Store, 'select'>,
  { tenant, work }: QueueOfTenant,
): Promise<Row<'due_work'>[]> {
  return store.select(workOfTenant(tenant, work));
}

export interface FinishedWork extends QueueOfTenant {
  readonly notes: readonly Row<'due_work'>[];
  readonly now: Instant;
  /** When the next of the tenant's work is due, if any waits. */
  readonly next: Instant | undefined;
}

/** Nothing is due any more: notes that were due go, and one says when something is due next. */
export async function finishNotes(
  store: Pick<Store, 'record'>,
  { tenant, work, notes, now, next }: FinishedWork,
): Promise<void> {
  const over = notes.filter(({ due_at }) => due_at <= now);
  const isNoted = next === undefined || notes.some(({ due_at }) => due_at === next);
  const following = isNoted ? [] : [{ tenant_id: tenant, work, due_at: next }];
  if (over.length === 0 && following.length === 0) return;
  // On a conflict, another server was faster.
  await store.record({ remove: { due_work: over }, insert: { due_work: following } });
}
