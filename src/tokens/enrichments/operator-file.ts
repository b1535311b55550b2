/** A table that the operator keeps in a file: read at the start, and again when the file changes. */
import { readFile, stat } from 'node:fs/promises';
import { type Clock, second } from '../../base/clock.ts';
import { DamagedFileError } from './damaged-file.ts';

const fileBytesMax = 64 * 1_048_576;

/** How long a change may go unnoticed. */
const checkMs = second;

/** The start is refused: a file that was configured cannot be used. */
export class OperatorFileError extends Error {
  constructor(variable: string, problem: string) {
    super(`${variable} names a file that cannot be used: ${problem}.`);
    this.name = 'OperatorFileError';
  }
}

export interface OperatorFile<T> {
  readonly path: string;
  /** The environment variable that names the file, for messages. */
  readonly variable: string;
  /** @throws DamagedFileError */
  readonly parse: (bytes: Buffer) => T | Promise<T>;
  readonly clock: Clock;
  /** Called once per change that cannot be used; the old table stays in force. */
  readonly onRefused: (problem: string) => void;
}

/**
 * Returns a function that returns the table as the file has it, at most a second old.
 *
 * @throws OperatorFileError when the file cannot be used now.
 */
export async function openOperatorFile<T>(file: OperatorFile<T>): Promise<() => Promise<T>> {
  const { path, variable, clock, onRefused } = file;
  let seen = await stampOf(path);
  let table = await load(file).catch((error: unknown) => {
    throw new OperatorFileError(variable, problemOf(error));
  });
  let checkedAt = clock.now();
  let checking = false;

  async function check(): Promise<void> {
    const stamp = await stampOf(path);
    if (stamp === seen) return;
    seen = stamp;
    try {
      table = await load(file);
    } catch (error) {
      onRefused(`${variable}: ${problemOf(error)}`);
    }
  }

  return async () => {
    // The first request waits for the new table; the others use the old one.
    if (!checking && clock.now() - checkedAt >= checkMs) {
      checking = true;
      await check();
      checkedAt = clock.now();
      checking = false;
    }
    return table;
  };
}

async function load<T>({ path, parse }: OperatorFile<T>): Promise<T> {
  const { size } = await stat(path);
  if (size > fileBytesMax) throw new DamagedFileError(1, `begins more than ${fileBytesMax} bytes`);
  return parse(await readFile(path));
}

/** What differs when a file was written or replaced; empty when it cannot be looked at. */
function stampOf(path: string): Promise<string> {
  return stat(path, { bigint: true }).then(
    ({ ino, size, mtimeNs, ctimeNs }) => [ino, size, mtimeNs, ctimeNs].join(),
    () => '',
  );
}

/** Paths and contents stay out of the log. */
function problemOf(error: unknown): string {
  if (error instanceof DamagedFileError) return error.message;
  return error instanceof Error && 'code' in error
    ? `it gives ${String(error.code)}`
    : 'unreadable';
}
