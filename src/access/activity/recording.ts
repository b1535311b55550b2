/**
 * Recording what was counted: a few hundred rows for each tenant, written again and again like a ring. All servers
 * add to the same rows.
 */
import { hour, type Instant, minute, parseInstant } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import type { Tenants } from '../../rules/tenant.ts';
import type { ActivitySpan } from '../../store/activity-table.ts';
import { sideBySide } from '../../store/per-tenant/record.ts';
import { activityIn } from '../../store/queries/activity.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import type { ActivityCounter, CountedActivity } from './counting.ts';
import { addFigures, type Figures, readFigures, storedFigures } from './figures.ts';

interface Ring {
  readonly ms: number;
  readonly slots: number;
}

/** A month is 30 days, and reports of both begin within a span. */
export const rings: Readonly<Record<ActivitySpan, Ring>> = {
  minute: { ms: minute, slots: 64 },
  hour: { ms: hour, slots: 31 * 24 },
};
const spans = Object.keys(rings) as readonly ActivitySpan[];

export interface ActivityRecording {
  readonly store: Pick<Store, 'select' | 'record'>;
  readonly tenants: Pick<Tenants, 'find'>;
  readonly activity: ActivityCounter;
}

const tenantsAtOnce = 8;
/** Other servers add to the same rows, each about once in half a minute. */
const attemptsMax = 5;

/** Resolves to the number of tenants whose activity was recorded. What could not be recorded is counted again. */
export async function recordActivity({
  store,
  tenants,
  activity,
}: ActivityRecording): Promise<number> {
  const byTenant = [...Map.groupBy(activity.take(), ({ tenant_id }) => tenant_id)];
  const left = new Map(byTenant);
  try {
    await sideBySide(byTenant, tenantsAtOnce, async ([id, counted]) => {
      // A deleted tenant leaves nothing behind.
      const isRecorded = !(await tenants.find(id)) || (await addToRows(store, id, counted));
      if (isRecorded) left.delete(id);
    });
  } finally {
    activity.add([...left.values()].flat());
  }
  return byTenant.length - left.size;
}

interface Added {
  readonly span: ActivitySpan;
  readonly slot: number;
  readonly started_at: Instant;
  readonly figures: Figures;
}

async function addToRows(
  store: ActivityRecording['store'],
  tenant_id: TenantId,
  counted: readonly CountedActivity[],
): Promise<boolean> {
  const added = spans.flatMap((span) => addedTo(span, counted));
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const rows = await store.select(activityIn(tenant_id, added));
    const insert: Row<'activity'>[] = [];
    const amend: (Row<'activity'> & { readonly was_revision: number })[] = [];
    for (const { figures, ...place } of added) {
      const found = rows.find(({ span, slot }) => span === place.span && slot === place.slot);
      // The slot holds a later span: the server was stopped for longer than the ring lasts.
      if (found && found.started_at > place.started_at) continue;
      const isSame = found?.started_at === place.started_at;
      const sum = isSame ? addFigures(readFigures(found.figures), figures) : figures;
      const row = {
        tenant_id,
        ...place,
        figures: storedFigures(sum),
        revision: (found?.revision ?? 0) + 1,
      };
      if (found) amend.push({ ...row, was_revision: found.revision });
      else insert.push(row);
    }
    if (insert.length + amend.length === 0) return true;
    const outcome = await store.record({
      insert: { activity: insert },
      amend: { activity: amend },
    });
    if (outcome.conflict === undefined) return true;
  }
  return false;
}

function addedTo(span: ActivitySpan, counted: readonly CountedActivity[]): readonly Added[] {
  const { ms, slots } = rings[span];
  const bySpan = Map.groupBy(counted, ({ minute: begun }) => Math.floor(begun / ms));
  // After an outage, two spans may have one slot: the later one remains.
  const bySlot = new Map<number, Added>();
  for (const number of [...bySpan.keys()].sort((one, other) => one - other)) {
    const slot = number % slots;
    const parts = bySpan.get(number) ?? [];
    const figures = parts.map((part) => part.figures).reduce(addFigures);
    bySlot.set(slot, { span, slot, started_at: parseInstant(number * ms), figures });
  }
  return [...bySlot.values()];
}

/** Often enough that a person who looks sees the last minute. */
export const recordedEveryMs = minute / 2;
