/**
 * The load generator `autocannon`. Run as a program it reads one job and prints one result;
 * {@link useAutocannon} does that in a process of its own, so that it shares an event loop with nothing
 * it measures.
 */
import { execFile } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import autocannon from 'autocannon';
import { cardNumber } from './cards.ts';
import { cardPlace, holdsPlace, type Job, type LoadResult, type RequestOf } from './job.ts';

const run = promisify(execFile);

/** The job goes through a pipe, because it may be longer than a command line. */
export async function useAutocannon(job: Job): Promise<LoadResult> {
  const running = run(process.execPath, [import.meta.filename]);
  running.child.stdin?.end(JSON.stringify(job));
  return JSON.parse((await running).stdout);
}

if (import.meta.main) {
  process.stdout.write(JSON.stringify(await shoot(JSON.parse(await text(process.stdin)))));
}

async function shoot(job: Job): Promise<LoadResult> {
  const before = process.cpuUsage();
  const result = await autocannon({
    url: job.url,
    connections: job.connections,
    duration: job.seconds,
    method: job.method,
    headers: job.headers,
    requests: [{ setupRequest: nextOf(job) }],
  });
  const { user, system } = process.cpuUsage(before);
  return {
    succeeded: result['2xx'],
    failed: result.non2xx + result.errors,
    seconds: result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    cores: (user + system) / 1e6 / result.duration,
  };
}

/**
 * One request that becomes the next at each turn: autocannon would prepare every request of a list for each
 * connection, which takes longer than the load.
 */
function nextOf({ requests, headers, serial: first }: Job) {
  const measurements = requests.map((request) =>
    holdsPlace(request) ? JSON.stringify(request) : plain(request),
  );
  let serial = first;
  let turn = 0;
  function plain({ path, body, idempotencyKey }: RequestOf) {
    const more = idempotencyKey && { 'svc-idempotency-key': idempotencyKey };
    return { path, ...(body !== undefined && { body }), headers: { ...headers, ...more } };
  }
  return (given: Readonly<Record<string, unknown>>) => {
    const one = measurements[turn % measurements.length] ?? '';
    turn += 1;
    if (typeof one === 'object') return { ...given, ...one };
    serial += 1;
    return { ...given, ...plain(JSON.parse(one.replaceAll(cardPlace, cardNumber(serial)))) };
  };
}
