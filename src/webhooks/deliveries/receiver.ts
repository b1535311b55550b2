/** Delivers to one webhook while it has waiting deliveries: loads a few into memory, and sends fewer at once. */
import type { Clock, Instant } from '../../base/clock.ts';
import type { DeliveryId, TenantId, WebhookId } from '../../base/ids.ts';
import type { Forward } from '../../outbound/forward.ts';
import {
  type AttemptEnd,
  createLane,
  type LaneTools,
  type RunningLane,
} from '../../queue/lanes.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import { dueDeliveries } from '../../store/event-queries/deliveries.ts';
import type { Row } from '../../store/tables.ts';
import { attempt, type Outcome } from './attempt.ts';
import { type DisableTools, disable, failingMsMax } from './disable.ts';
import { createHealth } from './health.ts';
import type { Messages } from './message.ts';
import { type Flaw, type PrepareTools, prepare, preparedBefore } from './prepare.ts';
import { type SettleTools, settle } from './settle.ts';
import { failUnreadable, isWhole } from './unreadable.ts';
import type { Webhook, Webhooks } from './webhooks-of.ts';

/** Concurrent attempts to one webhook. After a failure, there is only one attempt at a time. */
export const attemptsMax = 4;

/** Deliveries of one webhook in memory. The others stay in the database. */
const loadedMax = 100;

export interface ReceiverTools extends LaneTools, PrepareTools, SettleTools, DisableTools {
  readonly clock: Clock;
  readonly tenants: Tenants;
  readonly webhooks: Webhooks;
  readonly forward: Forward;
  readonly messages: Messages;
  /** Whether this server still holds the tenant's lease. */
  readonly isHeld: (tenant: TenantId) => boolean;
  /** Called with the outcome of each attempt. */
  readonly onAttempt: (webhook: WebhookId, outcome: AttemptResult) => void;
  /** Called with the time at which a failed delivery is due again. */
  readonly onRetry: (tenant: TenantId, at: Instant) => void;
  /** Aborted when the time for stopping is over. */
  readonly aborted: AbortSignal;
}

export type AttemptResult = 'delivered' | 'retried' | 'failed';

type AttemptOutcome = Outcome & { readonly flaw?: Flaw | undefined };

interface CurrentWebhook {
  readonly tenant: Tenant;
  readonly webhook: Webhook;
}

interface TenantWebhook {
  readonly tenant: TenantId;
  readonly webhook: WebhookId;
}

/** @param onIdle called when no delivery is due. */
export function createReceiver(
  tools: ReceiverTools,
  { tenant: tenantId, webhook: webhookId }: TenantWebhook,
  onIdle: () => void,
): RunningLane {
  const health = createHealth(tools.store, { tenant_id: tenantId, webhook_id: webhookId });
  /** Loaded and not yet recorded. */
  const loaded = new Set<DeliveryId>();
  /** Deliveries that failed because of the vault itself. They stay due, and are loaded again once the lane is woken. */
  const stuck = new Set<DeliveryId>();
  /** Deliveries that ended during the current query, which may still have returned them as due. */
  const overMeanwhile = new Set<DeliveryId>();
  let ready: Row<'deliveries'>[] = [];
  /** Attempts with a 410 response whose webhook is not disabled yet. No attempt starts meanwhile. */
  let disabling = 0;
  let mayHaveMore = false;
  let loading: Promise<void> | undefined;
  let isStopped = false;

  const lane = createLane(
    tools,
    {
      tenant: tenantId,
      atOnceMax: () => (disabling > 0 ? 0 : health.isFailing ? 1 : attemptsMax),
      isReady: () => ready.length > 0,
      claim: () => {
        const next = ready.shift();
        if (next === undefined) return undefined;
        const soon = health.isFailing ? undefined : ready[attemptsMax - 1];
        if (soon) signAhead(soon);
        refill();
        return () => send(next);
      },
    },
    rest,
  );

  async function current(): Promise<CurrentWebhook | undefined> {
    const tenant = await tools.tenants.find(tenantId);
    const webhooks = tenant ? await tools.webhooks.of(tenant) : [];
    const webhook = webhooks.find(({ id }) => id === webhookId);
    return tenant && webhook?.row.status === 'enabled' ? { tenant, webhook } : undefined;
  }

  /** Loads the deliveries that are due first, except those already loaded. */
  async function load(): Promise<void> {
    mayHaveMore = false;
    if (stuck.size >= loadedMax) return;
    const found = await current();
    if (found === undefined || !tools.isHeld(tenantId)) return drop();
    const { tenant, webhook } = found;
    const limit = loadedMax + loaded.size + stuck.size;
    const { ordered } = webhook;
    const now = tools.clock.now();
    overMeanwhile.clear();
    const query = dueDeliveries({ tenant: tenantId, webhook: webhookId, now, ordered, limit });
    // An ordered query may read all deliveries that wait for one entity before it finds another.
    const due = await (ordered ? tools.store.scan(query, 'vault') : tools.store.select(query));
    if (due.length === limit) mayHaveMore = true;
    const passedOver = [loaded, stuck, overMeanwhile];
    await failUnreadable(
      tools,
      tenant,
      due.filter((row) => !isWhole(row)),
    );
    const fresh = due
      .filter(isWhole)
      .filter(({ delivery_id: id }) => !passedOver.some((ids) => ids.has(id)));
    for (const { delivery_id } of fresh) loaded.add(delivery_id);
    // Prepares them together to fill the cache. Results are dropped because they are large, and each failure counts
    // alone.
    await Promise.allSettled(fresh.map((row) => prepare(tools, tenant, row)));
    ready.push(...fresh);
    if (!health.isFailing) for (const row of ready.slice(0, attemptsMax)) signAhead(row);
  }

  /** Loaded deliveries stay in the database. */
  function drop(): void {
    for (const { delivery_id } of ready) loaded.delete(delivery_id);
    ready = [];
  }

  function refill(): void {
    if (!isStopped && mayHaveMore && hasRoom()) loading ??= loadAll();
  }

  async function loadAll(): Promise<void> {
    try {
      while (mayHaveMore && hasRoom() && !isStopped) {
        await load();
        lane.wake();
      }
    } catch (error) {
      drop();
      tools.onFailure(error);
    } finally {
      loading = undefined;
      rest();
    }
  }

  /** True if few deliveries are ready, and most of the sent ones are recorded. */
  function hasRoom(): boolean {
    return ready.length < attemptsMax && loaded.size < loadedMax;
  }

  function rest(): void {
    refill();
    if (isIdle() && !mayHaveMore) onIdle();
  }

  const isIdle = () => loaded.size === 0 && loading === undefined;

  /** Signs ahead, so that the few running attempts spend most of their time on requests. */
  function signAhead({ tenant_id, event_id: event }: Row<'deliveries'>): void {
    const prepared = preparedBefore(tools, { tenant_id, event_id: event });
    const tenant = tools.tenants.known(tenant_id);
    if (prepared && tenant) {
      tools.messages.signAhead({ tenant, event, envelope: prepared.envelope });
    }
  }

  /** The next attempt need not wait until this one is recorded, unless the receiver is gone. */
  async function send(delivery: Row<'deliveries'>): Promise<AttemptEnd | undefined> {
    try {
      const found = await current();
      const outcome = found && tools.isHeld(tenantId) ? await tryOnce(delivery, found) : undefined;
      if (found && outcome && outcome.error !== 'aborted') {
        if (isGone(outcome)) disabling++;
        return { conclude: () => record(delivery, outcome, found) };
      }
    } catch (error) {
      stuck.add(delivery.delivery_id);
      unload(delivery);
      throw error;
    }
    unload(delivery);
    return undefined;
  }

  async function record(
    delivery: Row<'deliveries'>,
    outcome: AttemptOutcome,
    found: CurrentWebhook,
  ): Promise<void> {
    try {
      await conclude(delivery, outcome, found);
    } catch (error) {
      stuck.add(delivery.delivery_id);
      throw error;
    } finally {
      if (isGone(outcome)) disabling--;
      unload(delivery);
    }
  }

  /** Either it is recorded, or it stays due. */
  function unload({ delivery_id }: Row<'deliveries'>): void {
    loaded.delete(delivery_id);
    if (loading) overMeanwhile.add(delivery_id);
    refill();
  }

  async function tryOnce(
    delivery: Row<'deliveries'>,
    { tenant, webhook }: CurrentWebhook,
  ): Promise<AttemptOutcome | undefined> {
    const { sent, flaw } = await prepare(tools, tenant, delivery);
    if (sent === undefined) return { ...nothingSent, error: flaw, flaw };
    const now = tools.clock.now();
    const message = await tools.messages.sign({
      tenant,
      event: delivery.event_id,
      envelope: sent.envelope,
      keys: webhook.keys.filter(({ ends_at }) => (ends_at ?? now + 1) > now).map(({ key }) => key),
    });
    if (disabling > 0) {
      // It is still due, even if the webhook was changed meanwhile and stays enabled.
      mayHaveMore = true;
      return undefined;
    }
    const { forward, aborted: signal } = tools;
    const { loop } = sent;
    return attempt(forward, { url: webhook.url.reveal(), message, loop, tenant: tenantId, signal });
  }

  async function conclude(
    delivery: Row<'deliveries'>,
    outcome: AttemptOutcome,
    { tenant, webhook }: CurrentWebhook,
  ): Promise<void> {
    const { flaw, error } = outcome;
    const hopeless = isGone(outcome) || flaw !== undefined;
    // Recorded first. Otherwise, if the process is killed in between, a failure days later would seem to continue
    // the old one.
    if (error === undefined) await health.succeeded();
    const { state, dueAt } = await settle(tools, delivery, { ...outcome, hopeless });
    tools.onAttempt(webhookId, state === 'waiting' ? 'retried' : state);
    if (dueAt !== undefined) tools.onRetry(tenantId, dueAt);
    if (state === 'delivered') {
      if (webhook.ordered) mayHaveMore = true;
      return;
    }
    if (flaw !== undefined) return;
    const failingMs = await health.failed(tools.clock.now());
    if (isGone(outcome) || failingMs > failingMsMax) await disable(tools, tenant, webhook);
  }

  return {
    tenant: tenantId,
    wake: () => {
      if (lane.isResting) return;
      mayHaveMore = true;
      stuck.clear();
      refill();
      lane.wake();
    },
    stop: async () => {
      isStopped = true;
      drop();
      await lane.stop();
      await loading;
    },
    idle: lane.idle,
    get isIdle() {
      return isIdle();
    },
    get isResting() {
      return lane.isResting;
    },
  };
}

const nothingSent = { status: undefined, milliseconds: 0, retryAfter: undefined };

/** The status with which a receiver rejects all further events. */
const goneStatus = 410;

function isGone(outcome: AttemptOutcome | undefined): boolean {
  return outcome?.status === goneStatus;
}
