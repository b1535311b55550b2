/**
 * Delivers events: finds tenants with waiting events, dispatches them, and runs a receiver per webhook with
 * deliveries.
 */
import { type Clock, type Instant, second } from '../../base/clock.ts';
import type { TenantId, WebhookId } from '../../base/ids.ts';
import { createGrowingPause } from '../../base/pauses.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import { tenantsWithEvents, webhooksWithWaiting } from '../../store/event-queries/deliveries.ts';
import { idsOf } from '../../store/queries/due-tenants.ts';
import type { Store } from '../../store/store.ts';
import { type DispatchTools, dispatch } from './dispatch.ts';
import type { Leases } from './leases.ts';
import { createReceiver, type Receiver, type ReceiverTools } from './receiver.ts';

/**
 * The polling interval, for events that other servers committed or left behind when they were killed, and for
 * retries. Commits of this process trigger a pass immediately.
 */
export const lookEveryMs = 3 * second;

/** The delay between two passes, so that events committed one by one are dispatched together. */
const pauseMs = 10;

/** The delay after failed passes. All passes fail while the database is unreachable. */
const failurePauses = { firstMs: second, maxMs: 10 * second };

/** How long running attempts may take once the process stops. */
const stopMsMax = 2 * second;

export interface DelivererTools
  extends Omit<ReceiverTools, 'isHeld' | 'onRetry' | 'aborted'>,
    DispatchTools {
  readonly store: Store;
  readonly tenants: Tenants;
  readonly clock: Clock;
  readonly leases: Leases;
  /** Resolves after that time, or earlier if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

export interface Deliverer {
  /** Resolves once all attempts have been recorded or abandoned. */
  stop(): Promise<void>;
}

export function startDeliverer(tools: DelivererTools): Deliverer {
  const { store, tenants, clock, leases, pause, onFailure } = tools;
  const { epochs } = store;
  const stopping = new AbortController();
  const aborting = new AbortController();
  const failurePause = createGrowingPause(failurePauses);
  const receivers = new Map<string, Receiver & { readonly tenant: TenantId }>();
  /** When the next retry is due. */
  let retryAt: Instant | undefined;
  /** Whether a tenant's batch was full. */
  let hasMoreEvents = false;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let deliveriesSeen = epochs.now('deliveries');

  const receiverTools: ReceiverTools = {
    ...tools,
    isHeld: (tenant) => leases.isHeld(tenant),
    onRetry: (at) => {
      retryAt = at < (retryAt ?? at + 1) ? at : retryAt;
    },
    aborted: aborting.signal,
  };

  function nudge(tenant: TenantId, webhook: WebhookId): void {
    if (stopping.signal.aborted) return;
    const name = `${tenant} ${webhook}`;
    let receiver = receivers.get(name);
    if (receiver === undefined) {
      const own = createReceiver(receiverTools, { tenant, webhook }, () => {
        // A receiver can report idle again after another one has replaced it.
        if (receivers.get(name) === named) receivers.delete(name);
      });
      const named = { ...own, tenant };
      receiver = named;
      receivers.set(name, named);
    }
    receiver.nudge();
  }

  /** Dispatches one batch, so that a tenant with many events does not delay the others. */
  async function dispatchSome(tenant: Tenant): Promise<void> {
    const dispatched = await dispatch(tools, tenant);
    if (dispatched.hasMore) hasMoreEvents = true;
    for (const webhook of dispatched.webhooks) nudge(tenant.id, webhook);
  }

  async function serve(id: TenantId, work: (tenant: Tenant) => Promise<void>): Promise<void> {
    try {
      const tenant = await tenants.find(id);
      if (tenant && (await leases.hold(id))) await work(tenant);
    } catch (error) {
      onFailure(error);
    }
  }

  async function lookForEvents(): Promise<void> {
    hasMoreEvents = false;
    const found = await store.select(tenantsWithEvents);
    const owners = found.map(({ owner }) => owner);
    const ids = await idsOf(store, owners);
    await Promise.all(ids.flatMap((id) => (id ? [serve(id, dispatchSome)] : [])));
  }

  /** Finds due retries, deliveries that callers requested again, and deliveries that a stopped server left behind. */
  async function lookForDeliveries(): Promise<void> {
    retryAt = undefined;
    lookedAt = performance.now();
    deliveriesSeen = epochs.now('deliveries');
    const now = clock.now();
    const waiting = await store.select(webhooksWithWaiting);
    const due = new Map<TenantId, WebhookId[]>();
    const owners = waiting.map(({ owner }) => owner);
    const ids = await idsOf(store, owners);
    for (const [at, { webhook_id, due_at }] of waiting.entries()) {
      const id = ids[at];
      if (id === undefined) continue;
      if (due_at !== null && due_at > now) receiverTools.onRetry(due_at);
      else due.set(id, [...(due.get(id) ?? []), webhook_id]);
    }
    await Promise.all(
      [...due].map(([id, webhooks]) =>
        serve(id, async () => {
          for (const webhook of webhooks) nudge(id, webhook);
        }),
      ),
    );
  }

  async function renewLeases(): Promise<void> {
    const busy = new Set([...receivers.values()].map(({ tenant }) => tenant));
    for (const tenant of busy) await leases.hold(tenant).catch(onFailure);
  }

  function isLookDue(): boolean {
    const isRetryDue = retryAt !== undefined && clock.now() >= retryAt;
    const isLongAgo = performance.now() - lookedAt >= lookEveryMs;
    return isLongAgo || isRetryDue || epochs.now('deliveries') !== deliveriesSeen;
  }

  async function look(): Promise<void> {
    if (isLookDue()) {
      await renewLeases();
      await lookForDeliveries();
    }
    await lookForEvents();
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const seen = epochs.now('events');
      try {
        await look();
      } catch (error) {
        onFailure(error);
        // Otherwise a due retry, or the next commit, would start the next pass immediately.
        await pause(failurePause.next(), stopping.signal);
        continue;
      }
      failurePause.reset();
      if (hasMoreEvents) continue;
      await pause(pauseMs, stopping.signal);
      const retryMs = retryAt === undefined ? lookEveryMs : retryAt - clock.now();
      await epochs.change('events', seen, Math.max(1, Math.min(retryMs, lookEveryMs)));
    }
  }

  const running = run();
  return {
    stop: async () => {
      stopping.abort();
      epochs.advance('events');
      await running;
      const stopped = Promise.all([...receivers.values()].map((receiver) => receiver.stop()));
      const done = new AbortController();
      void pause(stopMsMax, done.signal).then(() => aborting.abort());
      await stopped;
      done.abort();
      await leases.release();
    },
  };
}
