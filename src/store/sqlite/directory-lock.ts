/** One server for each embedded database: a lock that the operating system frees when its process ends. */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makePrivateDirectory } from '../private-directory.ts';

/** The start is refused: another server has the directory. */
export class DirectoryLockedError extends Error {
  constructor(dataDir: string) {
    super(
      `Another server is running on the data directory ${dataDir}. Stop it first, or set ` +
        'STRONGROOM_DATA_DIR to another directory. Several servers can share a PostgreSQL database.',
    );
    this.name = 'DirectoryLockedError';
  }
}

export interface DirectoryLock {
  /** False where the file system cannot lock, so that a second server would not be noticed. */
  readonly isHeld: boolean;
  release(): void;
}

/** How long a server that is just ending, or a command that is just looking, is waited for. */
const waitMs = 1_000;

/** SQLite's result codes, without their extensions. */
const busy = 5;
const primaryCode = 0xff;

/**
 * Locks the directory for as long as this process lives. The lock is on a file of its own, so commands still
 * read and write the database. It is SQLite's, because Node has no lock of its own on files.
 * @throws DirectoryLockedError when a server has it, or what `refuse` throws then.
 */
export function lockDirectory(dataDir: string, refuse?: () => never): DirectoryLock {
  const lock = lockFile(dataDir, 'strongroom.lock');
  if (lock !== undefined) return lock;
  refuse?.();
  throw new DirectoryLockedError(dataDir);
}

/** The same with a file of that name in the directory; `undefined` when another process has it. */
export function lockFile(dataDir: string, name: string): DirectoryLock | undefined {
  makePrivateDirectory(dataDir);
  const file = join(dataDir, name);
  const database = new DatabaseSync(file, { timeout: waitMs });
  try {
    chmodSync(file, 0o600);
    database.exec('pragma journal_mode = memory');
    database.exec('begin exclusive');
    return { isHeld: true, release: () => database.close() };
  } catch (error) {
    database.close();
    if (isBusy(error)) return undefined;
    if (Number.isNaN(codeOf(error))) throw error;
    return { isHeld: false, release: () => undefined };
  }
}

/** SQLITE_BUSY: another connection has the lock. */
export function isBusy(error: unknown): boolean {
  return (codeOf(error) & primaryCode) === busy;
}

function codeOf(error: unknown): number {
  return Number((error as { readonly errcode?: unknown }).errcode);
}
