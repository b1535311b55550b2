/** Newline-delimited JSON for tests: requests of lines, and answers read as lines. */
import assert from 'node:assert/strict';
import type { TestTenant } from './tenant.ts';
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

/** Creates a token for each line, and gives what is answered. */
export async function bulk(
  tenant: TestTenant,
  lines: readonly unknown[],
  key = tenant.key,
): Promise<Lines> {
  const answer = await tenant.send('POST', '/tokens/bulk', { ...linesSent(lines), key });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers.get('content-type'), 'application/x-ndjson');
  return linesOfAnswer(answer);
}
