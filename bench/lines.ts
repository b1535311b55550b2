/** Lines over HTTP, in both directions at once. */
import { once } from 'node:events';
import { type IncomingMessage, request as send } from 'node:http';
import { linesOf } from '../src/http/protocol/lines.ts';
import { linesMediaType } from '../src/http/protocol/route.ts';
import type { LoadResult } from './job.ts';
import { headersOf } from './vault.ts';

const lineBytesMax = 1_048_576;
const writeCharacters = 65_536;

export interface Target {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function bulkTarget(url: string, key: string): Target {
  const headers = { ...headersOf(key), 'content-type': linesMediaType };
  return { url: `${url}/tokens/bulk`, headers };
}

/** Posts the lines while the answers come. */
export async function postLines(
  { url, headers }: Target,
  lines: Iterable<string>,
  onLine: (line: Buffer) => void,
): Promise<void> {
  const request = send(url, { method: 'POST', headers });
  const answer = once(request, 'response') as Promise<[IncomingMessage]>;
  const sending = (async () => {
    let text = '';
    for (const line of lines) {
      text += `${line}\n`;
      if (text.length < writeCharacters) continue;
      if (!request.write(text)) await once(request, 'drain');
      text = '';
    }
    request.end(text);
  })();
  await Promise.all([sending, answer.then(([response]) => readLines(response, onLine))]);
}

/** The same as a load: posts lines for so long, and waits for the last answer. */
export async function postLinesFor(
  seconds: number,
  target: Target,
  lines: Iterable<string>,
): Promise<LoadResult> {
  const began = performance.now();
  const cpuBefore = process.cpuUsage();
  const elapsed = () => (performance.now() - began) / 1_000;
  let succeeded = 0;
  let failed = 0;
  await postLines(
    target,
    until(() => elapsed() >= seconds, lines),
    (line) => {
      if (line.includes('"status":201')) succeeded += 1;
      else failed += 1;
    },
  );
  const { user, system } = process.cpuUsage(cpuBefore);
  const taken = elapsed();
  const cores = (user + system) / 1e6 / taken;
  return { succeeded, failed, seconds: taken, p50Ms: Number.NaN, p99Ms: Number.NaN, cores };
}

function* until(over: () => boolean, lines: Iterable<string>): Generator<string> {
  for (const line of lines) {
    if (over()) return;
    yield line;
  }
}

/** Gets lines until the answer ends. */
export async function getLines({ url, headers }: Target, onLine: (line: Buffer) => void) {
  const request = send(url, { headers });
  request.end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  await readLines(response, onLine);
}

async function readLines(response: IncomingMessage, onLine: (line: Buffer) => void) {
  if (response.statusCode !== 200) throw new Error(`the answer was ${response.statusCode}`);
  for await (const lines of linesOf(response, lineBytesMax)) {
    for (const line of lines) {
      if (line === undefined) throw new Error('a line of the answer is too long');
      onLine(line);
    }
  }
}
