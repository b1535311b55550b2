/** The message of a server about its start: a line for people, or a line of the log for a collector. */
import type { Terminal } from './terminal.ts';

/** The number that such lines have for their level. */
const info = 30;

/** Whatever the level of the log is: a first start shows its key once. */
export function say({ stdout }: Terminal, text: string): void {
  const line = stdout.isTTY ? text : lineOf(text);
  stdout.write(`${line}\n`);
}

function lineOf(text: string): string {
  return JSON.stringify({ level: info, time: new Date().toISOString(), msg: text });
}
