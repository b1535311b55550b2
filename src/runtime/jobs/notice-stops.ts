/** Noticing what has stopped without a request: the export of the log, and backups. */
import { createRaise, type RaiseTools } from '../../access/watch/raise.ts';
import { type StopTools, watchStopped } from '../../access/watch/stalled.ts';
import { type Instant, minute, second } from '../../base/clock.ts';
import type { Job } from './runner.ts';

export interface Stops {
  /** Since when the export of the log fails. */
  readonly exportFailingSince: (() => Instant | undefined) | undefined;
  /** When the newest backup was made; `undefined` where none is noted. */
  readonly lastBackupAt: () => Instant | undefined;
}

/** The note of a backup is read this often. */
const backupReadMs = minute;

export function noticeStops(
  tools: StopTools & RaiseTools,
  { exportFailingSince, lastBackupAt }: Stops,
): Job {
  const { clock } = tools;
  let readAt: number | undefined;
  let backupAt: Instant | undefined;
  const backupSince = () => {
    const now = clock.now();
    if (readAt === undefined || Math.abs(now - readAt) >= backupReadMs) {
      readAt = now;
      backupAt = lastBackupAt();
    }
    return backupAt;
  };
  const look = watchStopped(tools, createRaise(tools), [
    {
      name: 'log export',
      quota: 'alert_export_lag',
      since: () => exportFailingSince?.(),
    },
    { name: 'backup', quota: 'alert_backup_age', since: backupSince },
  ]);
  return { name: 'notice what has stopped', everyMs: 2 * second, run: look };
}
