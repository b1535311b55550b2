/**
 * The load generator. Run as a program it takes one job as JSON and prints one result; {@link applyLoad}
 * does that in a process of its own, so that it shares an event loop with nothing it measures.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import autocannon from 'autocannon';
import { cardBody } from './cards.ts';
import type { Job, LoadResult } from './job.ts';
import { useWrk, wrkPath } from './wrk.ts';

const run = promisify(execFile);
const outputBytesMax = 1_000_000;

export async function applyLoad(job: Job): Promise<LoadResult> {
  const { stdout } = await run(process.execPath, [import.meta.filename, JSON.stringify(job)], {
    maxBuffer: outputBytesMax,
  });
  return JSON.parse(stdout);
}

if (import.meta.main) {
  const job: Job = JSON.parse(process.argv[2] ?? '');
  const result = wrkPath ? await useWrk(job, wrkPath) : await useAutocannon(job);
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
