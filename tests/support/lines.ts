/** Newline-delimited JSON for tests: requests of lines, and answers read as lines. */
import type { Received, Sent } from './vault.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert on whatever came back
export type Lines = readonly any[];

/** A request whose body is these lines; a text is sent as it is. */
export function linesSent(lines: readonly unknown[]): Sent {
  const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
  return {
    body: texts.map((text) => `${text}\n`).join(''),
    headers: { 'content-type': 'application/x-ndjson' },
  };
}

export function linesOfAnswer({ text }: Pick<Received, 'text'>): Lines {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
