/**
 * What a command has of the process that runs it. The program gives `process` itself; commands use it through this
 * alone, so that several of them can run in one process, one after the other or at once.
 */
import type { Readable, Writable } from 'node:stream';
import type { Environment } from '../../runtime/config/variables.ts';

/** Where a terminal is, and not a file or a pipe, `isTTY` is true. */
export interface TerminalInput extends Readable {
  readonly isTTY?: boolean;
  /** Only of a terminal: characters arrive as they are typed, and are not shown. */
  setRawMode?(isRaw: boolean): unknown;
}

export interface TerminalOutput extends Writable {
  readonly isTTY?: boolean;
  /** The width of a terminal, in characters. */
  readonly columns?: number;
}

export interface Terminal {
  readonly stdin: TerminalInput;
  readonly stdout: TerminalOutput;
  readonly stderr: TerminalOutput;
  readonly env: Environment;
  /** Ends a command that waits for others, when the reader of its output has gone. */
  exit(code: number): void;
}
