/** Earlier code of a reactor, so that a change can be taken back. It is stored beside calls, whose quota it uses. */
import type { Clock } from '../../base/clock.ts';
import { instantAfter } from '../../base/clock.ts';
import { newUuid, type ReactorId, type ReactorRunId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import type { Caller } from '../../rules/caller.ts';
import type { Row } from '../../store/tables.ts';
import { callerOfRun, runRow, versionRetentionMs } from './run-row.ts';
import type { StoredBytes } from './stored-bytes.ts';

/** The row that keeps the code; none where the tenant has no room: the change goes on without it. */
export type KeepVersion = (
  caller: Caller,
  reactor: ReactorId,
  code: string,
) => Promise<readonly Row<'reactor_runs'>[]>;

export interface VersionTools {
  readonly clock: Clock;
  readonly random: Random;
  readonly storedBytes: StoredBytes;
}

export function keepingVersions({ clock, random, storedBytes }: VersionTools): KeepVersion {
  return async (caller, reactor_id, code) => {
    const { tenant } = caller;
    const now = clock.now();
    const row = runRow(
      { tenant, random },
      {
        tenant_id: tenant.id,
        run_id: newUuid<ReactorRunId>(random),
        reactor_id,
        version: 1,
        due_at: null,
        created_at: now,
        expires_at: instantAfter(now, versionRetentionMs),
      },
      { kind: 'sync', caller: callerOfRun(caller), attempts: 0, isFailed: false, log: [], code },
    );
    return (await storedBytes.admit(tenant, row.body.length)) ? [row] : [];
  };
}
