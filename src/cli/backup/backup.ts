/** `strongroom backup`: a copy of the database as of one moment, and a manifest by which it is verified. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Config, readConfig } from '../../runtime/config/config.ts';
import { noteBackup } from '../../runtime/last-backup.ts';
import { openBackedUp } from '../../store/open/read-only.ts';
import { BackupError, backUpSqlite } from '../../store/sqlite/backup.ts';
import { databaseFile } from '../../store/sqlite/database.ts';
import { type Command, type Flags, jsonFlag, print, UsageError } from '../terminal/command.ts';
import { counted, startProgress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { contentOf, type Manifest, manifestFile, writeManifest } from './manifest.ts';
import { directoryNamed, prune } from './prune.ts';

export const backupCommand: Command = {
  summary:
    'Copy the database as of one moment, also while servers run, with a manifest. It is encrypted as the database ' +
    'is, and the root key is not in it. `strongroom restore DIR` restores it, on either engine.',
  operand: { name: 'DIR', meaning: 'directory for the copy, created if needed' },
  flags: {
    keep: {
      kind: 'string',
      value: 'N',
      meaning:
        'make the copy in a directory of DIR that is named by the time, and keep the N newest',
    },
    json: jsonFlag,
  },
  examples: ['/var/backups/strongroom/2026-11-22', '--keep 14 /var/backups/strongroom --json'],
  run: async (flags, terminal) => {
    const named = flags['DIR'];
    if (typeof named !== 'string') throw new UsageError('the DIR for the copy is required');
    const keep = keptNumber(flags);
    const config = readConfig(terminal.env);
    const now = new Date();
    const directory = keep === undefined ? named : join(named, directoryNamed(now));
    const { manifest, pages } = await backUp(terminal, config, { directory, now });
    noteBackup(config.dataDir, { created_at: manifest.created_at, directory: resolve(directory) });
    const vaultId = manifest.vault_id;
    const removed = keep === undefined ? [] : prune(named, { keep, vaultId });
    const rows = Object.values(manifest.rows).reduce((sum, count) => sum + count, 0);
    const rootKey = placeOfRootKey(config);
    const { engine, vault_id, root_key } = manifest;
    print(terminal, flags, {
      json: {
        directory,
        engine,
        pages,
        rows,
        vault_id,
        root_key: rootKey,
        key_id: root_key?.key_id,
        removed,
      },
      line: [
        `The database was copied to ${directory} (${counted(rows, 'row')}).`,
        ...removed.map((one) => `Removed the older backup ${one}.`),
        `The root key is not in it. Back it up separately: ${rootKey}`,
      ].join('\n'),
    });
    return 0;
  },
};

function keptNumber(flags: Flags): number | undefined {
  const text = flags['keep'];
  if (text === undefined) return undefined;
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 1) return number;
  throw new UsageError('--keep must be a number from 1');
}

interface Making {
  readonly directory: string;
  readonly now: Date;
}

interface MadeBackup {
  readonly manifest: Manifest;
  /** Of the embedded engine. */
  readonly pages: number | undefined;
}

/** @throws BackupError when it cannot be made; the directory then does not look like a backup. */
export async function backUp(
  terminal: Terminal,
  config: Config,
  making: Making,
): Promise<MadeBackup> {
  const { directory, now } = making;
  const taken = manifestFile(directory);
  if (existsSync(taken)) throw new BackupError(`${taken} exists. Name another directory.`);
  const pages = await copy(terminal, config, making);
  const { store, version } = await openBackedUp(databaseFile(directory));
  try {
    const engine = config.databaseUrl === undefined ? 'sqlite' : 'postgres';
    const content = await contentOf(store, version);
    const made = { engine, created_at: now.toISOString(), ...content } as const;
    return { manifest: await writeManifest(directory, made), pages };
  } finally {
    await store.close();
  }
}

async function copy(
  terminal: Terminal,
  { databaseUrl, dataDir }: Config,
  { directory }: Making,
): Promise<number | undefined> {
  let progress: ReturnType<typeof startProgress> | undefined;
  try {
    if (databaseUrl === undefined) {
      const onPart = (copied: number, total: number) => {
        progress ??= startProgress(terminal, 'pages', total);
        progress.report(copied);
      };
      return await backUpSqlite({ dataDir, directory, onPart });
    }
    const { backUpPostgres } = await import('../../store/postgres/backup.ts');
    progress = startProgress(terminal, 'rows', undefined);
    await backUpPostgres({ databaseUrl, directory, onRows: progress.report });
    return undefined;
  } finally {
    progress?.finish();
  }
}

function placeOfRootKey({ rootKey, rootKeyFile }: Config): string {
  if (rootKey.source === 'environment') return 'STRONGROOM_ROOT_KEY';
  if (rootKey.source !== 'file') return `the source ${rootKey.source}`;
  return existsSync(rootKeyFile) ? rootKeyFile : `${rootKeyFile} (missing)`;
}
