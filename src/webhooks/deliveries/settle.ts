/** What comes of an attempt: the delivery is over, or due again, and the webhook may have to be disabled. */
import type { Clock, Instant } from '../../base/clock.ts';
import { type Random, randomBelow } from '../../base/random.ts';
import type { Row } from '../../store/tables.ts';
import { type Attempt, attemptsOf } from '../events/delivery-row.ts';
import type { Outcome } from './attempt.ts';
import { nextAttemptAt, retryAfterMsOf } from './schedule.ts';
import type { RecordDelivery } from './settlements.ts';

export interface Settled {
  readonly state: Row<'deliveries'>['state'];
  /** Of the next attempt, where there is one. */
  readonly dueAt: Instant | undefined;
}

export interface SettleTools {
  readonly recordDelivery: RecordDelivery;
  readonly clock: Clock;
  readonly random: Random;
}

/** More than one delivery gets by itself; each that callers ask for adds one, and the oldest are forgotten. */
export const attemptsStoredMax = 30;

/** Some resolution for what spreads retries. */
const steps = 1_000;

/**
 * Records an attempt.
 * @param hopeless no other attempt can succeed.
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
