/** Raising an alert: an entry of the log, an event, and a metric. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Clock, minute, second } from '../../base/clock.ts';
import { reasonOf } from '../../base/errors.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { Metrics } from '../../base/telemetry/metrics.ts';
import { type AlertKind, alertEntry } from '../../rules/alert-entry.ts';
import type { Change } from '../../store/change.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { Store } from '../../store/store.ts';

interface Alert {
  /** What it is about: a key, an application, a token, or a checkpoint of the log. */
  readonly id: string;
  readonly detail: string;
  /** Is committed with the alert: if it is in the way, another server has raised the alert. */
  readonly insert?: Change['insert'];
}

/** @param cause the entry of what was noticed; it says who, and from where. */
export type RaiseAlert = (kind: AlertKind, cause: LogEntry, alert: Alert) => void;

export interface RaiseTools {
  /** Without the steps of requests: an alert raises no other. */
  readonly store: Pick<Store, 'commit'>;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, 'alert'>;
  readonly log: Pick<Log, 'error'>;
}

/** The same alert about the same caller is not repeated for so long. */
const quietMs = minute;
const alertsRemembered = 10_000;

/** Alerts that wait for the store at once, so that a flood takes neither its room nor memory. */
const waitingMax = 1000;
/** Between attempts to record an alert; the last failure is a line of the process's own log. */
const retriesMs = [100, 400, second, 5 * second, 30 * second, minute];

export function createRaise({ store, clock, metrics, log }: RaiseTools): RaiseAlert {
  const raised = new ExpiringMap<string, true>({
    clock,
    ageMsMax: quietMs,
    entriesMax: alertsRemembered,
  });
  let waiting = 0;

  async function record(change: Change): Promise<void> {
    for (const retryMs of retriesMs) {
      try {
        await store.commit(change);
        return;
      } catch {
        await pause(retryMs, undefined, { ref: false });
      }
    }
    await store.commit(change);
  }

  return (kind, cause, { insert, ...alert }) => {
    const { tenant_id, source, origin } = cause;
    const name = JSON.stringify([tenant_id, kind, alert, source?.key_id, origin]);
    if (raised.get(name)) return;
    raised.set(name, true);
    metrics.alert(kind);
    const lost = (reason: string) => log.error(`an alert is not in the log: ${kind}`, { reason });
    if (waiting >= waitingMax) return lost('too many alerts wait for the store');
    waiting++;
    const entries: Change['entries'] = [alertEntry(kind, cause, { ...alert, at: clock.now() })];
    record(insert ? { insert, entries } : { entries })
      .catch((error: unknown) => lost(reasonOf(error)))
      .finally(() => {
        waiting--;
      });
  };
}
