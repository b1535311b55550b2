/** The load generator `wrk`, where the machine has it: written in C, it leaves the cores to the servers. */
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { cardPlace, holdsPlace, type Job, type LoadResult, type RequestOf } from './job.ts';
import { endedChildrenCpuSeconds } from './resources.ts';

const run = promisify(execFile);

export const wrkPath = (process.env['PATH'] ?? '')
  .split(delimiter)
  .map((directory) => join(directory, 'wrk'))
  .find(existsSync);

/** For example `4.1.0`. */
export function wrkVersion(): string {
  const { stdout } = spawnSync(wrkPath ?? 'wrk', ['-v'], { encoding: 'utf8' });
  return /\d+(?:\.\d+)+/.exec(stdout)?.[0] ?? 'of unknown version';
}

export async function useWrk(job: Job): Promise<LoadResult> {
  if (wrkPath === undefined) throw new Error('this machine has no wrk');
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-wrk-'));
  const script = join(directory, 'job.lua');
  writeFileSync(script, luaOf(job));
  const before = endedChildrenCpuSeconds();
  try {
    const flags = ['-t1', `-c${job.connections}`, `-d${job.seconds}s`, '-s', script];
    const { stdout } = await run(wrkPath, [...flags, job.url]);
    const [succeeded, failed, seconds, p50Ms, p99Ms] = JSON.parse(
      stdout.slice(stdout.indexOf('[[')),
    )[0];
    const cores = (endedChildrenCpuSeconds() - before) / seconds;
    return { succeeded, failed, seconds, p50Ms, p99Ms, cores };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/**
 * Requests are put together before the first is sent; of the cards that `cardNumber` gives, only the
 * number remains to be put in. Times in wrk are microseconds; `errors.status` counts answers from 400 on.
 */
function luaOf({ method, headers, requests, serial }: Job): string {
  return `
    ${Object.entries(headers)
      .map(([name, value]) => `wrk.headers[${quoted(name)}] = ${quoted(value)}`)
      .join('\n')}
    local measurements = {${requests.map(turnOf).join(', ')}}
    local serial = ${serial}
    local turn = 0
    function init()
      for at, one in ipairs(measurements) do
        wrk.headers["svc-idempotency-key"] = one.key
        measurements[at] = { text = wrk.format(${quoted(method)}, one.path, nil, one.body), open = one.open }
      end
    end
    local function luhn(digits)
      local sum = 0
      for place = 0, #digits - 1 do
        local digit = digits:byte(#digits - place) - 48
        if place % 2 == 0 then
          digit = digit * 2
          if digit > 9 then digit = digit - 9 end
        end
        sum = sum + digit
      end
      return (10 - sum % 10) % 10
    end
    function request()
      turn = turn % #measurements + 1
      local one = measurements[turn]
      if not one.open then return one.text end
      serial = serial + 1
      local digits = "424242" .. string.format("%09d", serial % 1000000000)
      return (one.text:gsub("${cardPlace}", digits .. luhn(digits)))
    end
    function done(summary, latency)
      local e = summary.errors
      local failed = e.status + e.connect + e.read + e.write + e.timeout
      io.write(string.format("[[%d, %d, %f, %f, %f]]\\n", summary.requests - e.status, failed,
        summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
    end`;
}

function turnOf(request: RequestOf): string {
  const { path, body, idempotencyKey } = request;
  const fields = [
    `path = ${quoted(path)}`,
    ...(body === undefined ? [] : [`body = ${quoted(body)}`]),
    ...(idempotencyKey === undefined ? [] : [`key = ${quoted(idempotencyKey)}`]),
    `open = ${holdsPlace(request)}`,
  ];
  return `{${fields.join(', ')}}`;
}

/** A JSON string of these texts is a Lua string too: they hold no escapes but quotes and backslashes. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
