/**
 * The load generator. Run as a program it takes one job as JSON and prints one result; {@link applyLoad}
 * does that in a process of its own, so that it shares an event loop with nothing it measures.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import autocannon from 'autocannon';
import { cardBody } from './cards.ts';
import { endedChildrenCpuSeconds } from './process.ts';

export interface Job {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly seconds: number;
  readonly connections: number;
  /**
   * These are read in turn, or cards are posted to `/tokens`, counting up from `serial`, or these bodies
   * are posted in turn.
   */
  readonly work:
    | { readonly paths: readonly string[] }
    | { readonly serial: number; readonly idempotent?: boolean }
    | { readonly path: string; readonly bodies: readonly string[] };
}

export interface LoadResult {
  readonly generator: 'autocannon' | 'wrk';
  readonly succeeded: number;
  readonly failed: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Cores the generator itself kept busy. Near 1, it and not the server was the limit. */
  readonly cores: number;
}

const run = promisify(execFile);
const outputBytesMax = 1_000_000;

export async function applyLoad(job: Job): Promise<LoadResult> {
  const { stdout } = await run(process.execPath, [import.meta.filename, JSON.stringify(job)], {
    maxBuffer: outputBytesMax,
  });
  return JSON.parse(stdout);
}

const wrkPath = (process.env['PATH'] ?? '')
  .split(delimiter)
  .map((directory) => join(directory, 'wrk'))
  .find(existsSync);

if (import.meta.main) {
  const job: Job = JSON.parse(process.argv[2] ?? '');
  const result =
    'paths' in job.work && wrkPath ? await useWrk(job, wrkPath) : await useAutocannon(job);
  process.stdout.write(JSON.stringify(result));
}

async function useAutocannon(job: Job): Promise<LoadResult> {
  const before = process.cpuUsage();
  const result = await autocannon({
    url: job.url,
    connections: job.connections,
    duration: job.seconds,
    method: 'paths' in job.work ? 'GET' : 'POST',
    headers: job.headers,
    requests: requestsOf(job.work),
  });
  const { user, system } = process.cpuUsage(before);
  return {
    generator: 'autocannon',
    succeeded: result['2xx'],
    failed: result.non2xx + result.errors,
    seconds: result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    cores: (user + system) / 1e6 / result.duration,
  };
}

function requestsOf(work: Job['work']) {
  if ('paths' in work) return work.paths.map((path) => ({ path }));
  if ('serial' in work) return [posts(work.serial, work.idempotent === true)];
  return work.bodies.map((body) => ({ path: work.path, body }));
}

/** Each card under an idempotency key of its own, where that is asked for. */
function posts(first: number, idempotent: boolean) {
  let serial = first;
  return {
    path: '/tokens',
    setupRequest: (request: Readonly<Record<string, unknown>>) => {
      serial += 1;
      const headers = {
        ...(request['headers'] as object),
        ...(idempotent && { 'svc-idempotency-key': `card-${serial}` }),
      };
      return { ...request, headers, body: cardBody(serial) };
    },
  };
}

/** Reads only: it is written in C and leaves the second core to the server. */
async function useWrk(job: Job, wrk: string): Promise<LoadResult> {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-wrk-'));
  const script = join(directory, 'job.lua');
  writeFileSync(script, luaOf(job));
  try {
    const flags = ['-t1', `-c${job.connections}`, `-d${job.seconds}s`, '-s', script];
    const { stdout } = await run(wrk, [...flags, job.url]);
    const [succeeded, failed, seconds, p50Ms, p99Ms] = JSON.parse(
      stdout.slice(stdout.indexOf('[[')),
    )[0];
    const cores = endedChildrenCpuSeconds() / seconds;
    return { generator: 'wrk', succeeded, failed, seconds, p50Ms, p99Ms, cores };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Times in wrk are microseconds; `errors.status` counts answers from 400 on. */
function luaOf(job: Job): string {
  const paths = 'paths' in job.work ? job.work.paths : [];
  const headers = Object.entries(job.headers);
  return `
    local paths = {${paths.map((path) => JSON.stringify(path)).join(', ')}}
    local turn = 0
    ${headers.map(([name, value]) => `wrk.headers["${name}"] = ${JSON.stringify(value)}`).join('\n')}
    function request()
      turn = turn % #paths + 1
      return wrk.format("GET", paths[turn])
    end
    function done(summary, latency)
      local e = summary.errors
      local failed = e.status + e.connect + e.read + e.write + e.timeout
      io.write(string.format("[[%d, %d, %f, %f, %f]]\\n", summary.requests - e.status, failed,
        summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
    end`;
}
