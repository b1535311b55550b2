/** The messages of a server about its start, its reloads and its end: lines for people, or of the log. */
import type { Terminal } from './terminal.ts';

/** The numbers that lines of the log have for their level. */
const levels = { info: 30, error: 50 } as const;

/** Whatever the level of the log is: a first start shows its key once. */
export function say(terminal: Terminal, text: string): void {
  write(terminal, 'info', text);
}

export function sayError(terminal: Terminal, text: string): void {
  write(terminal, 'error', text);
}

function write({ stdout }: Terminal, level: keyof typeof levels, text: string): void {
  const line = { level: levels[level], time: new Date().toISOString(), msg: text };
  stdout.write(`${stdout.isTTY ? text : JSON.stringify(line)}\n`);
}
