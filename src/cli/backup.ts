/** `strongroom backup`: a copy of the embedded database, also while a server runs. */
import { existsSync } from 'node:fs';
import { type Config, readConfig } from '../runtime/config/config.ts';
import { backUpSqlite } from '../store/sqlite/backup.ts';
import { type Command, jsonFlag, print, UsageError } from './terminal/command.ts';
import { grouped, startProgress } from './terminal/progress.ts';

export const backupCommand: Command = {
  summary:
    'Copy the embedded database as of one moment, also while a server runs. The root key is not in the copy. ' +
    'To restore, start a server with the copy as its data directory and the same root key.',
  operand: { name: 'DIR', meaning: 'directory for the copy, created if needed' },
  flags: { json: jsonFlag },
  examples: ['/var/backups/strongroom/2026-11-22', '/mnt/backup/strongroom --json'],
  run: async (flags) => {
    const directory = flags['DIR'];
    if (typeof directory !== 'string') throw new UsageError('the DIR for the copy is required');
    const config = readConfig();
    if (config.databaseUrl !== undefined) {
      throw new UsageError(
        'only the embedded database is copied; back up PostgreSQL with pg_dump or pg_basebackup',
      );
    }
    const pages = await copy(config.dataDir, directory);
    const rootKey = placeOfRootKey(config);
    print(flags, {
      json: { directory, pages, root_key: rootKey },
      line:
        `The database was copied to ${directory} (${grouped(pages)} pages).\n` +
        `The root key is not in it. Back it up separately: ${rootKey}`,
    });
    return 0;
  },
};

async function copy(dataDir: string, directory: string): Promise<number> {
  let progress: ReturnType<typeof startProgress> | undefined;
  try {
    return await backUpSqlite({
      dataDir,
      directory,
      onPart: (copied, total) => {
        progress ??= startProgress('pages', total);
        progress.report(copied);
      },
    });
  } finally {
    progress?.finish();
  }
}

function placeOfRootKey({ rootKey, rootKeyFile }: Config): string {
  if (rootKey.source === 'environment') return 'STRONGROOM_ROOT_KEY';
  if (rootKey.source !== 'file') return `the source ${rootKey.source}`;
  return existsSync(rootKeyFile) ? rootKeyFile : `${rootKeyFile} (missing)`;
}
