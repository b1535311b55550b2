/** The usage report: how many tokens a tenant holds, by type, and how many bytes its applications have stored. */
import type { Clock, Instant } from '../../base/clock.ts';
import { parseInstant } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import { createKeyedMutex } from '../../base/keyed-mutex.ts';
import { type Caller, payerOf } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { type ApplicationBytes, storedBytesOf } from '../../store/queries/stored-bytes.ts';
import { tokenCountsByType } from '../../store/queries/tokens.ts';
import type { Store } from '../../store/store.ts';

export interface UsageReporting {
  readonly store: Store;
  readonly clock: Clock;
}

/** A count goes through all tokens of the tenant, so a thread has one at a time for each. */
const inTurn = createKeyedMutex();

export function reportUsage({ store, clock }: UsageReporting, caller: Caller): Decide {
  const { tenant } = caller;
  return async () => {
    const now = clock.now();
    const counts = await inTurn(tenant.id, () =>
      store.scan(
        tokenCountsByType(tenant.id, { now, activeSince: startOfMonth(now) }),
        payerOf(caller),
      ),
    );
    const total = counts.reduce((sum, { count }) => sum + count, 0);
    const stored = await store.select(storedBytesOf(tenant.id));
    const fact = { entity: 'tenant', id: tenant.id, operation: 'report' } as const;
    return {
      change: { entries: [entryOf(caller, now, fact)] },
      reply: {
        status: 200,
        body: {
          total_tokens: total,
          token_report: {
            total_tokens: total,
            monthly_active_tokens: counts.reduce((sum, { active }) => sum + active, 0),
            metrics_by_type: Object.fromEntries(
              counts.map(({ type, count, last_created_at }) => [
                type,
                { count, last_created_at: formatTimestamp(last_created_at) },
              ]),
            ),
          },
          ...(stored.length > 0 && { storage: storageOf(stored) }),
        },
      },
    };
  };
}

function storageOf(stored: readonly ApplicationBytes[]) {
  const byApplication = stored.map(
    ({ application_id, bytes }) => [application_id, Number(bytes)] as const,
  );
  return {
    stored_bytes: byApplication.reduce((sum, [, bytes]) => sum + bytes, 0),
    by_application: Object.fromEntries(byApplication),
  };
}

function startOfMonth(now: Instant): Instant {
  const date = new Date(now);
  return parseInstant(Date.UTC(date.getUTCFullYear(), date.getUTCMonth()));
}
