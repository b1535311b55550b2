/**
 * Delivers events: finds tenants with waiting events, dispatches them, and runs a receiver per webhook with
 * deliveries.
 */
import { type Clock, type Instant, minute, second } from '../../base/clock.ts';
import { isIntegrityError } from '../../base/errors.ts';
import type { TenantId, WebhookId } from '../../base/ids.ts';
import { createKeyedMutex } from '../../base/keyed-mutex.ts';
import { createGrowingPause } from '../../base/pauses.ts';
import { createLanes, failurePauses } from '../../queue/lanes.ts';
import type { Leases } from '../../queue/leases.ts';
import { newNote } from '../../queue/notes.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import { tenantsWithEvents } from '../../store/event-queries/deliveries.ts';
import { dueWork, idsOf } from '../../store/queries/due-tenants.ts';
import type { Store } from '../../store/store.ts';
import { waitingOf } from '../events/delivery-row.ts';
import { type DispatchTools, dispatch } from './dispatch.ts';
import { createReceiver, type ReceiverTools } from './receiver.ts';
import { lookAtQueue, tenantsWaiting } from './waiting.ts';

/**
 * The polling interval, for events that other servers committed or left behind when they were killed, and for
 * retries. Commits of this process trigger a pass immediately.
 */
export const lookEveryMs = 3 * second;

/** The delay between two passes, so that events committed one by one are dispatched together. */
const pauseMs = 10;

/** The polling interval for deliveries without a note, which servers of earlier releases leave behind. */
const sweepEveryMs = 10 * minute;

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
  /** Looking at a tenant's queue and adding to it exclude each other. */
  const oneByOne = createKeyedMutex();
  /** Tenants with a due note, which covers what is dispatched for as long as this server holds the lease. */
  const noted = new Set<TenantId>();
  /** When the next retry of a tenant is due. */
  const retries = new Map<TenantId, Instant>();
  /** Whether a tenant's batch was full. */
  let hasMoreEvents = false;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let sweptAt = Number.NEGATIVE_INFINITY;
  let deliveriesSeen = epochs.now('deliveries');

  const receiverTools: ReceiverTools = {
    ...tools,
    isHeld: (tenant) => leases.isHeld(tenant),
    onRetry: (tenant, at) => {
      if (at < (retries.get(tenant) ?? at + 1)) retries.set(tenant, at);
    },
    aborted: aborting.signal,
  };

  /** One for each webhook. */
  const lanes = createLanes<`${TenantId} ${WebhookId}`>();

  function wake(tenant: TenantId, webhook: WebhookId): void {
    const make = (onIdle: () => void) => createReceiver(receiverTools, { tenant, webhook }, onIdle);
    lanes.wake(`${tenant} ${webhook}`, make);
  }

  /** Dispatches one batch, so that a tenant with many events does not delay the others. */
  async function dispatchSome(tenant: Tenant): Promise<void> {
    const { id } = tenant;
    const note = noted.has(id) ? undefined : await newNote(store, waitingOf(id), clock.now());
    const dispatched = await dispatch(tools, tenant, note);
    if (dispatched.hasMore) hasMoreEvents = true;
    if (dispatched.webhooks.size > 0) noted.add(id);
    for (const webhook of dispatched.webhooks) wake(id, webhook);
  }

  async function serve(id: TenantId, work: (tenant: Tenant) => Promise<void>): Promise<void> {
    try {
      await oneByOne(id, async () => {
        const tenant = await tenants.find(id);
        const held = tenant && (await leases.hold(id));
        if (held === 'taken') noted.delete(id);
        if (tenant && held) await work(tenant);
      });
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

  async function lookAt(tenant: Tenant): Promise<void> {
    const { id } = tenant;
    const now = clock.now();
    retries.delete(id);
    const isBusy = lanes.tenants().has(id);
    const { due, next } = await lookAtQueue({ ...tools, tenant, now, isBusy });
    if (next !== undefined) receiverTools.onRetry(id, next);
    if (due.length > 0 || isBusy) noted.add(id);
    else noted.delete(id);
    for (const webhook of due) wake(id, webhook);
  }

  /** Finds due retries, deliveries that callers requested again, and deliveries that a stopped server left behind. */
  async function lookForDeliveries(): Promise<void> {
    lookedAt = performance.now();
    deliveriesSeen = epochs.now('deliveries');
    const now = clock.now();
    for (const [id, at] of retries) if (at <= now) retries.delete(id);
    const due = new Set<TenantId>();
    try {
      for await (const notes of dueWork(store, { work: 'waiting deliveries', until: now })) {
        for (const { tenant_id } of notes) due.add(tenant_id);
      }
    } catch (error) {
      // A note that was altered outside the vault.
      if (!isIntegrityError(error)) throw error;
      onFailure(error);
    }
    if (lookedAt - sweptAt >= sweepEveryMs) {
      for await (const id of tenantsWaiting(store)) due.add(id);
      sweptAt = lookedAt;
    }
    await Promise.all([...due].map((id) => serve(id, lookAt)));
  }

  async function renewLeases(): Promise<void> {
    for (const tenant of lanes.tenants()) {
      const held = await leases.hold(tenant).catch(onFailure);
      if (held === 'taken') noted.delete(tenant);
    }
  }

  /** Infinite if none is known. */
  function nextRetry(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const at of retries.values()) next = Math.min(next, at);
    return next;
  }

  function isLookDue(): boolean {
    const isRetryDue = nextRetry() <= clock.now();
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
      const retryMs = nextRetry() - clock.now();
      await epochs.change('events', seen, Math.max(1, Math.min(retryMs, lookEveryMs)));
    }
  }

  const running = run();
  return {
    stop: async () => {
      stopping.abort();
      epochs.advance('events');
      await running;
      const stopped = lanes.stop();
      const done = new AbortController();
      void pause(stopMsMax, done.signal).then(() => aborting.abort());
      await stopped;
      done.abort();
      await leases.release();
    },
  };
}
