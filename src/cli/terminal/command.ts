/** The declaration of a command. */

import type { Terminal } from './terminal.ts';
import { visible } from './visible.ts';

export interface Flag {
  readonly kind: 'string' | 'boolean';
  /** The name of its value in the help. */
  readonly value?: string;
  /** It may be given several times. */
  readonly repeated?: true;
  /** The values that it can have, if that is a short list. */
  readonly choices?: readonly string[];
  /** The resource whose ids are its values, which scripts of shells ask the vault for. */
  readonly ids?: string;
  /** Values that scripts of shells offer, although it takes any other. */
  readonly offered?: readonly string[];
  readonly meaning: string;
}

export type Flags = Readonly<Record<string, string | boolean | string[] | undefined>>;

export interface Command {
  /** Whole sentences; the list of all commands has a few words for each. */
  readonly summary: string;
  readonly flags: Readonly<Record<string, Flag>>;
  /** The arguments after the words, without names, given to `run` among the flags. */
  readonly operand?: Operand | readonly Operand[];
  /** Lines that can be typed, without `strongroom` and the words of the command. */
  readonly examples: readonly string[];
  /** Resolves to the exit code. */
  readonly run: (flags: Flags, terminal: Terminal) => Promise<number>;
}

export interface Operand {
  readonly name: string;
  readonly meaning: string;
  /** The last one, which is all words that follow. */
  readonly takesRest?: true;
  /** The values that it can have, if that is a short list. */
  readonly choices?: readonly string[];
  /** The resource whose ids are its values, which scripts of shells ask the vault for. */
  readonly ids?: string;
}

/** The operands of a command, in their order. */
export function operandsOf({ operand }: Pick<Command, 'operand'>): readonly Operand[] {
  return [operand ?? []].flat();
}

/** The command was called in a way it cannot be. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The text of a flag that must be given. */
export function required(flags: Flags, name: string): string {
  const value = flags[name];
  if (typeof value === 'string' && value !== '') return value;
  throw new UsageError(`--${name} is required`);
}

/** The texts of a flag that may be given several times, or of an operand that is all words that follow. */
export function repeated(flags: Flags, name: string): readonly string[] {
  const value = flags[name];
  return Array.isArray(value) ? value : [];
}

/** The output of a command: one JSON object for programs, or lines for people. */
export function print(
  { stdout }: Terminal,
  flags: Flags,
  { json, line }: { json: object; line: string },
): void {
  stdout.write(`${flags['json'] === true ? JSON.stringify(json) : linesOf(line)}\n`);
}

function linesOf(text: string): string {
  return text.split('\n').map(visible).join('\n');
}

export const jsonFlag: Flag = { kind: 'boolean', meaning: 'print JSON, for programs' };

/** For commands whose standard output may be the data itself. */
export const summaryFlag: Flag = {
  kind: 'boolean',
  meaning: 'print the counts as JSON, the last line of standard error',
};

export function printSummary({ stderr }: Terminal, flags: Flags, counts: object): void {
  if (flags['json'] === true) stderr.write(`${JSON.stringify(counts)}\n`);
}
