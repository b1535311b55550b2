/** The message of a server about its start: a line for people, or a line of the log for a collector. */

/** The number that such lines have for their level. */
const info = 30;

/** Whatever the level of the log is: a first start shows its key once. */
export function say(text: string): void {
  const line = process.stdout.isTTY ? text : lineOf(text);
  process.stdout.write(`${line}\n`);
}

function lineOf(text: string): string {
  return JSON.stringify({ level: info, time: new Date().toISOString(), msg: text });
}
