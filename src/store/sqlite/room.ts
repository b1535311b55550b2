/** The room that growing writes leave on the disk, so that reading and deleting go on when it is nearly full. */
import { statfsSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { databaseFile } from './database.ts';
import { freeBytesFloor } from './free-space.ts';

/** While room is short the write-ahead log is emptied when it has grown by that, or by this part of the floor. */
const walMax = { bytes: 2 ** 20, ofFloor: 0.25 } as const;
/** A checkpoint reads and writes much, so that a full disk is no reason for more than one in this time. */
const checkpointEveryMs = 20;
/**
 * Reading writes to the log and may take the last room as well, so commits look, but not more often than that while
 * there is room. Once there is none, every commit looks: deletions of 20 ms can fill megabytes of the write-ahead log.
 */
const lookEveryMs = 20;
/** Once room is short it is short until there is clearly more, not with every page that is given back. */
const recovered = 1.1;

export interface Room {
  /** Whether what grows has to be refused at this moment. Call it outside of transactions. */
  isShort(): boolean;
  /** After each commit, outside of transactions: keeps the write-ahead log small while room is short. */
  tidy(): void;
  /**
   * Moves the write-ahead log into the database and gives its space back, as far as that is possible now.
   * @returns false if readers prevent it, for whom it has waited a while.
   */
  giveBack(): boolean;
}

interface RoomOptions {
  readonly dataDir: string;
  readonly freeBytesMin: number | undefined;
}

/**
 * What counts as free is what the file system has, and the pages that the database has and does not use. The
 * write-ahead log may need its own size again, because its pages are still to be moved into the database.
 */
export function createRoom(database: DatabaseSync, { dataDir, freeBytesMin }: RoomOptions): Room {
  const wal = `${databaseFile(dataDir)}-wal`;
  const freePages = database.prepare('pragma freelist_count');
  const pageSize = database.prepare('pragma page_size');
  let wasShort = false;
  let wasTight = false;
  /** Readers kept the last checkpoint from emptying the write-ahead log. */
  let isHeld = false;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let givenBackAt = Number.NEGATIVE_INFINITY;

  const walBytes = () => statSync(wal, { throwIfNoEntry: false })?.size ?? 0;
  const numberOf = (row: Record<string, unknown> | undefined) =>
    Number(Object.values(row ?? {})[0]);

  function measured() {
    const { bsize, blocks, bavail } = statfsSync(dataDir);
    const floor = freeBytesFloor({ sizeBytes: bsize * blocks }, freeBytesMin);
    return { free: bsize * bavail, floor: wasShort ? floor * recovered : floor };
  }

  /** Cheap for a disk with room, which every growing commit asks for. */
  function hasRoom(): boolean {
    const { free, floor } = measured();
    return free >= floor + walBytes();
  }

  function hasFreePages(): boolean {
    const { free, floor } = measured();
    const unused = numberOf(freePages.get()) * numberOf(pageSize.get());
    return free >= floor / 4 + walBytes() && free + unused >= floor + walBytes();
  }

  function giveBack(): boolean {
    isHeld = false;
    try {
      database.exec('pragma busy_timeout = 250');
      isHeld = database.prepare('pragma wal_checkpoint(truncate)').get()?.['busy'] !== 0;
    } catch {
      // The disk has not even room for that; what comes next says so.
    }
    // It may have waited for readers all that time.
    givenBackAt = performance.now();
    return !isHeld;
  }

  function isShort(): boolean {
    try {
      if (hasRoom()) return false;
      if (mayGiveBack()) giveBack();
      return !(hasRoom() || hasFreePages());
    } catch {
      // Where the system does not say how much is free, a full disk is found by writing.
      return false;
    }
  }

  const mayGiveBack = () => performance.now() - givenBackAt >= checkpointEveryMs;

  /** The write-ahead log may not even grow to the size at which SQLite empties it by itself. */
  function tidy(): void {
    const now = performance.now();
    if (!wasTight && now - lookedAt < lookEveryMs) return;
    lookedAt = now;
    try {
      const { free, floor } = measured();
      const wal = walBytes();
      wasTight = free < floor + wal;
      const isLarge = wal > Math.min(walMax.bytes, walMax.ofFloor * floor);
      if (wasTight && isLarge && (!isHeld || mayGiveBack())) giveBack();
    } catch {
      // What cannot be looked at is found by writing.
    }
  }

  return {
    isShort: () => {
      wasShort = isShort();
      return wasShort;
    },
    tidy,
    giveBack,
  };
}
