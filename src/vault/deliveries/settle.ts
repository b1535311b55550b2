/** What comes of an attempt: the delivery is over, or due again, and the webhook may have to be disabled. */
import type { Clock, Instant } from '../../lib/clock.ts';
import { type Random, randomBelow } from '../../lib/random.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { type Attempt, attemptsOf } from '../events/delivery-row.ts';
import type { Outcome } from './attempt.ts';
import { nextAttemptAt, retryAfterMsOf } from './schedule.ts';

export interface Settled {
  readonly state: Row<'deliveries'>['state'];
  /** Of the next attempt, where there is one. */
  readonly dueAt: Instant | undefined;
}

export interface SettleTools {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
}

/** More than one delivery gets by itself; each that callers ask for adds one, and the oldest are forgotten. */
export const attemptsStoredMax = 30;

/** Some resolution for what spreads retries. */
const steps = 1_000;

/**
 * Records an attempt. Committed together with whatever else is committed at this moment.
 * @param hopeless no other attempt can succeed.
 */
export async function settle(
  { store, clock, random }: SettleTools,
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
  // A conflict says that the delivery is gone, or was settled by another server: then that is what counts.
  await store.record({
    amend: {
      deliveries: [
        {
          ...{ tenant_id, webhook_id, delivery_id },
          state: settled.state,
          due_at: settled.dueAt ?? due_at,
          attempts: JSON.stringify(attempts),
          ...{ was_state: delivery.state, was_due_at: due_at },
        },
      ],
    },
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
