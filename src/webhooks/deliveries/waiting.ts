/** The queue of a tenant's deliveries: when something of it is due. */
import type { Instant } from '../../base/clock.ts';
import type { TenantId, WebhookId } from '../../base/ids.ts';
import { finishNotes, newNote, notesOf } from '../../queue/notes.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { firstWaiting, nextTenantWaiting } from '../../store/event-queries/deliveries.ts';
import type { TenantOrNumber } from '../../store/queries/due.ts';
import { idsOf } from '../../store/queries/due-tenants.ts';
import type { Store } from '../../store/store.ts';
import { waitingOf } from '../events/delivery-row.ts';
import type { Webhooks } from './webhooks-of.ts';

export interface LookedAt {
  readonly store: Store;
  readonly webhooks: Webhooks;
  readonly tenant: Tenant;
  readonly now: Instant;
  /** Whether deliveries of the tenant are in memory. */
  readonly isBusy: boolean;
}

export interface DueDeliveriesOfTenant {
  /** The enabled webhooks with due deliveries. */
  readonly due: readonly WebhookId[];
  /** When the next retry is due. */
  readonly next: Instant | undefined;
}

/**
 * Looks at the queue of a tenant whose lease this server holds. Afterwards a note says that something is due or, if
 * nothing is, when something will be. Deliveries of disabled webhooks are not due.
 */
export async function lookAtQueue({
  store,
  webhooks,
  tenant,
  now,
  isBusy,
}: LookedAt): Promise<DueDeliveriesOfTenant> {
  const queue = waitingOf(tenant.id);
  const notes = await notesOf(store, queue);
  const enabled = (await webhooks.now(tenant)).filter(({ row }) => row.status === 'enabled');
  const firsts = await Promise.all(
    enabled.map(async ({ id: webhook }) => {
      const [first] = await store.select(firstWaiting({ tenant: tenant.id, webhook }));
      return { webhook, first };
    }),
  );
  const due: WebhookId[] = [];
  let next: Instant | undefined;
  for (const { webhook, first } of firsts) {
    if (first === undefined) continue;
    const at = first.due_at;
    if (at === null || at <= now) due.push(webhook);
    else next = at < (next ?? at + 1) ? at : next;
  }
  if (due.length === 0 && !isBusy) await finishNotes(store, { ...queue, notes, now, next });
  else if (!notes.some(({ due_at }) => due_at <= now)) {
    await store.record({ insert: { due_work: [await newNote(store, queue, now)] } });
  }
  return { due, next };
}

/** Every tenant for which a delivery waits, whether a note says so or not. */
export async function* tenantsWaiting(store: Pick<Store, 'select'>): AsyncGenerator<TenantId> {
  let after: TenantOrNumber | undefined;
  for (;;) {
    const [found] = await store.select(nextTenantWaiting(after));
    if (found === undefined) return;
    after = found.owner;
    const [id] = await idsOf(store, [after]);
    if (id) yield id;
  }
}
