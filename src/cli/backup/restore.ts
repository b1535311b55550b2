/** `strongroom restore`: a verified backup becomes a vault, in an empty place of either engine. */
import { tenantsWithLogs } from '../../audit/read.ts';
import { newUuid, type TenantId } from '../../base/ids.ts';
import { pooledRandom } from '../../base/random.ts';
import { detailed, systemEntry } from '../../rules/log-entries.ts';
import { type Config, readConfig } from '../../runtime/config/config.ts';
import { openVault, type Vault } from '../../runtime/open-vault.ts';
import { openRestored } from '../../store/open/open.ts';
import { RestoreError } from '../../store/restore-error.ts';
import { databaseFile } from '../../store/sqlite/database.ts';
import { requireEmptyDirectory, restoreSqlite } from '../../store/sqlite/restore.ts';
import { type Command, jsonFlag, print, UsageError } from '../terminal/command.ts';
import { counted, startProgress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { digestOf, type LogHead, type Manifest } from './manifest.ts';
import {
  findingsIn,
  restoredContent,
  type VerifiedBackup,
  verifyBackup,
  verifyContent,
} from './verify-backup.ts';

export const restoreCommand: Command = {
  summary:
    'Verify a backup and restore it into the configured place, which must be empty: a data directory, or a ' +
    'PostgreSQL database. The backup may be of either engine. If people hold its root key in shares, they are read ' +
    'from standard input, one a line. The log then says that the vault was restored.',
  operand: { name: 'DIR', meaning: 'directory of the backup' },
  flags: {
    'dry-run': {
      kind: 'boolean',
      meaning: 'verify everything, also next to a vault, and write nothing',
    },
    'accept-altered-log': {
      kind: 'boolean',
      meaning: 'restore although the log was not intact when the backup was made',
    },
    json: jsonFlag,
  },
  examples: ['/var/backups/strongroom/2026-11-22', '--dry-run /mnt/backup/strongroom --json'],
  run: async (flags, terminal) => {
    const directory = flags['DIR'];
    if (typeof directory !== 'string') throw new UsageError('the DIR of the backup is required');
    const config = readConfig(terminal.env);
    const isDry = flags['dry-run'] === true;
    // Before people are asked for shares, and a large backup is read.
    if (!isDry) await requireEmptyPlace(config);
    const backup = await verifyBackup(terminal, directory, { config, withoutShares: isDry });
    const { manifest, logFindings } = backup;
    const [finding] = logFindings;
    if (finding !== undefined && flags['accept-altered-log'] !== true) {
      throw new RestoreError(
        `The log of the backup is not intact: ${finding}. Nothing was changed.`,
      );
    }
    if (!isDry) await restore(terminal, backup, config);
    const { created_at, engine, vault_id } = manifest;
    const rows = Object.values(manifest.rows).reduce((sum, count) => sum + count, 0);
    const tenants = manifest.logs.length;
    print(terminal, flags, {
      json: { directory, restored: !isDry, created_at, engine, vault_id, rows, tenants },
      line: isDry
        ? `The backup of ${created_at} is complete and can be restored (${counted(rows, 'row')}).`
        : `The vault is restored as of ${created_at} (${counted(rows, 'row')}). What was committed since ` +
          'is gone: see docs/backup.md before you start it.',
    });
    return 0;
  },
};

async function requireEmptyPlace({ dataDir, databaseUrl }: Config): Promise<void> {
  if (databaseUrl === undefined) return requireEmptyDirectory(dataDir);
  const { requireEmptyDatabase } = await import('../../store/postgres/restore.ts');
  await requireEmptyDatabase(databaseUrl);
}

/** Into an empty place. */
async function restore(terminal: Terminal, backup: VerifiedBackup, config: Config): Promise<void> {
  const { file, digest } = backup;
  const { dataDir, databaseUrl } = config;
  if (databaseUrl === undefined) {
    const complete = async (staging: string) => {
      await requireDigest(databaseFile(staging), digest);
      await finish(backup, { ...config, dataDir: staging });
    };
    await restoreSqlite({ dataDir, file, complete });
    return;
  }
  const { restorePostgres } = await import('../../store/postgres/restore.ts');
  const progress = startProgress(terminal, 'rows', undefined);
  try {
    const complete = async () => {
      await verifyRows(backup, config);
      await finish(backup, config);
    };
    await restorePostgres({ databaseUrl, file, onRows: progress.report, complete });
  } finally {
    progress.finish();
  }
}

/** Of the file that is restored: another process may have written to the backup since it was verified. */
async function requireDigest(file: string, digest: string): Promise<void> {
  if ((await digestOf(file)) === digest) return;
  throw new RestoreError('The backup changed while it was restored. Nothing was changed.');
}

/** Compares what the database holds now with the manifest, and computes each hash of the log again. */
async function verifyRows(
  { manifest, logFindings }: VerifiedBackup,
  { databaseUrl, dataDir }: Config,
): Promise<void> {
  const store = await openRestored({
    databaseUrl,
    dataDir,
    newStreamId: () => newUuid(pooledRandom()),
  });
  try {
    verifyContent(await restoredContent(store, manifest), manifest);
    const [finding] = logFindings.length === 0 ? await findingsIn(store) : [];
    if (finding === undefined) return;
    throw new RestoreError(`The restored log is not intact: ${finding}.`);
  } finally {
    await store.close();
  }
}

/** Adds to each log that the vault was restored. No server serves the place yet. */
async function finish({ manifest, sharedKeys }: VerifiedBackup, config: Config): Promise<void> {
  const heads = new Map<string, LogHead>(manifest.logs.map((log) => [log.tenant_id, log]));
  const vault = await openVault(config, {
    openStore: openRestored,
    ...(sharedKeys && { sharedKeys }),
  });
  try {
    await noteRestored(vault, (tenant) => fromWhich(manifest, heads.get(tenant)));
  } finally {
    await vault.close();
  }
}

const tenantsAtOnce = 100;

/** An entry in the log of each tenant. */
export async function noteRestored(
  { store, clock }: Vault,
  detail: (tenant: TenantId) => string,
): Promise<void> {
  const tenants = await tenantsWithLogs(store);
  const record = (tenant: TenantId) => {
    const fact = { entity: 'tenant', id: tenant, operation: 'restore' } as const;
    const entry = systemEntry({ ...fact, tenant, at: clock.now() });
    return store.commit({ entries: [detailed(entry, detail(tenant))] });
  };
  for (let at = 0; at < tenants.length; at += tenantsAtOnce) {
    await Promise.all(tenants.slice(at, at + tenantsAtOnce).map(record));
  }
}

function fromWhich({ created_at }: Manifest, log: LogHead | undefined): string {
  return `made ${created_at}, with ${log?.entries ?? 0} entries, log head ${log?.head ?? 'none'}`;
}
