/** The activity report: what the callers of a tenant did, over an hour, a day, or a month. */
import { type Clock, day, hour, type Instant, minute, parseInstant } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { ActivitySpan } from '../../store/activity-table.ts';
import { activitySince } from '../../store/queries/activity.ts';
import { newestCheckpoint } from '../../store/queries/log-statements.ts';
import type { Store } from '../../store/store.ts';
import {
  addFigures,
  addRevealed,
  type Figures,
  latencyWithin,
  noFigures,
  readFigures,
} from './figures.ts';

interface Period {
  readonly span: ActivitySpan;
  /** From one point to the next. */
  readonly stepMs: number;
  readonly steps: number;
}

export const activityPeriods = {
  hour: { span: 'minute', stepMs: minute, steps: 60 },
  day: { span: 'hour', stepMs: hour, steps: 24 },
  month: { span: 'hour', stepMs: day, steps: 30 },
} as const satisfies Record<string, Period>;
export type ActivityPeriod = keyof typeof activityPeriods;

export interface ActivityReporting {
  readonly store: Store;
  readonly clock: Clock;
  /** When the vault was last backed up, as far as the server knows. */
  readonly lastBackupAt: () => Instant | undefined;
}

export function reportActivity(
  { store, clock, lastBackupAt }: ActivityReporting,
  caller: Caller,
  period: ActivityPeriod,
): Decide {
  const { tenant } = caller;
  const { span, stepMs, steps } = activityPeriods[period];
  return async () => {
    const now = clock.now();
    // The last step is under way.
    const spanMs = span === 'minute' ? minute : hour;
    const until = parseInstant((Math.floor(now / spanMs) + 1) * spanMs);
    const since = parseInstant(Math.max(0, until - steps * stepMs));
    const [rows, [newest], first] = await Promise.all([
      store.select(activitySince(tenant.id, span, since)),
      store.select(newestCheckpoint(tenant.id)),
      store.get('checkpoints', { tenant_id: tenant.id, seq: 1 }),
    ]);
    const points = Array.from({ length: steps }, () => noFigures);
    for (const { started_at, figures } of rows) {
      const at = Math.floor((started_at - since) / stepMs);
      const point = points[at];
      if (point) points[at] = addFigures(point, readFigures(figures));
    }
    const revealed = points.reduce((sum, point) => addRevealed(sum, point.revealed), {});
    const lastBackup = lastBackupAt();
    const fact = { entity: 'tenant', id: tenant.id, operation: 'report' } as const;
    return {
      change: { entries: [entryOf(caller, now, fact)] },
      reply: {
        status: 200,
        body: {
          period,
          since: formatTimestamp(since),
          until: formatTimestamp(until),
          step_seconds: stepMs / 1000,
          points: points.map((point, at) => viewPoint(point, parseInstant(since + at * stepMs))),
          revealed_by_application: revealed,
          log: {
            signed_since: first ? formatTimestamp(first.created_at) : null,
            signed_at: newest ? formatTimestamp(newest.created_at) : null,
          },
          last_backup_at: lastBackup === undefined ? null : formatTimestamp(lastBackup),
        },
      },
    };
  };
}

function viewPoint(figures: Figures, at: Instant) {
  const { requests, failed, refused, revealed } = figures;
  return {
    at: formatTimestamp(at),
    requests,
    failed,
    refused,
    revealed: Object.values(revealed).reduce((sum, values) => sum + values, 0),
    latency_ms: {
      median: latencyWithin(figures, 0.5) ?? null,
      p95: latencyWithin(figures, 0.95) ?? null,
    },
  };
}
