/** Handles the outcome of an attempt: completes the delivery or schedules a retry, and may disable the webhook. */
import type { Clock, Instant } from '../../base/clock.ts';
import { type Random, randomBelow } from '../../base/random.ts';
import type { Row } from '../../store/tables.ts';
import { type Attempt, attemptsOf } from '../events/delivery-row.ts';
import type { Outcome } from './attempt.ts';
import { nextAttemptAt, retryAfterMsOf } from './schedule.ts';
import type { RecordDelivery } from './settlements.ts';

export interface Settled {
  readonly state: Row<'deliveries'>['state'];
  /** When the next attempt is due, if there is one. */
  readonly dueAt: Instant | undefined;
}

export interface SettleTools {
  readonly recordDelivery: RecordDelivery;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * More than a delivery makes automatically. Each attempt that callers request adds one, and the oldest are dropped.
 */
export const attemptsStoredMax = 30;

/** The resolution of the random jitter. */
const steps = 1_000;

/**
 * Records an attempt.
 * @param hopeless whether no other attempt can succeed.
 */
export async function settle(
  { recordDelivery, clock, random }: SettleTools,
  delivery: Row<'deliveries'>,
  outcome: Outcome & { readonly hopeless?: boolean },
): Promise<Settled> {
  const now = clock.now();
  const attempts = [...attemptsOf(delivery), attemptOf(outcome, now)].slice(-attemptsStoredMax);
  const settled = settledBy(outcome, {
    attempts: attempts.length,
    now,
    retryAfterMs: retryAfterMsOf(outcome.retryAfter, now),
    random: randomBelow(random, steps) / steps,
  });
  const { tenant_id, webhook_id, delivery_id, due_at } = delivery;
  await recordDelivery({
    ...{ tenant_id, webhook_id, delivery_id },
    state: settled.state,
    due_at: settled.dueAt ?? due_at,
    attempts: JSON.stringify(attempts),
    ...{ was_state: delivery.state, was_due_at: due_at },
  });
  return settled;
}

function attemptOf({ status, milliseconds, error }: Outcome, at: Instant): Attempt {
  return {
    at,
    ...(status !== undefined && { status }),
    milliseconds,
    ...(error !== undefined && { error }),
  };
}

function settledBy(
  { error, hopeless = false }: Outcome & { readonly hopeless?: boolean },
  failed: Parameters<typeof nextAttemptAt>[0],
): Settled {
  if (error === undefined) return { state: 'delivered', dueAt: undefined };
  const dueAt = hopeless ? undefined : nextAttemptAt(failed);
  return { state: dueAt === undefined ? 'failed' : 'waiting', dueAt };
}
