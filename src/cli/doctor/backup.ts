/** The last backup: when it was made, and whether that is too long ago. */
import { day } from '../../base/clock.ts';
import type { Config } from '../../runtime/config/config.ts';
import { readLastBackup } from '../../runtime/last-backup.ts';
import { type Finding, reporter } from './finding.ts';

/** The timers that come with the vault make one each day. */
const backupAgeMsMax = 7 * day;

const advice = 'Run strongroom backup DIR, or repair its timer (docs/backup.md).';

export function checkBackup(
  { dataDir, databaseUrl }: Pick<Config, 'dataDir' | 'databaseUrl'>,
  hasProductionTenant: boolean,
): readonly Finding[] {
  const { ok, warning } = reporter('backup');
  const last = readLastBackup(dataDir);
  if (last) {
    const days = Math.floor((Date.now() - Date.parse(last.created_at)) / day);
    const text = `the last one was made at ${last.created_at} (${days} days ago) in ${last.directory}`;
    return [days * day >= backupAgeMsMax ? warning(text, advice) : ok(text)];
  }
  const none = 'strongroom backup has made none with this data directory';
  // Backups of PostgreSQL are often made by its own tools.
  if (databaseUrl !== undefined) return [ok(`${none}; those of other tools are not known here`)];
  return [hasProductionTenant ? warning(none, advice) : ok(none)];
}
