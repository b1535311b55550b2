/** The load generator `wrk`, where the machine has it: written in C, it leaves the cores to the servers. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import type { Job, LoadResult } from './job.ts';
import { endedChildrenCpuSeconds } from './process.ts';

const run = promisify(execFile);

export const wrkPath = (process.env['PATH'] ?? '')
  .split(delimiter)
  .map((directory) => join(directory, 'wrk'))
  .find(existsSync);

export async function useWrk(job: Job, wrk: string): Promise<LoadResult> {
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
  const headers = Object.entries(job.headers);
  return `
    ${headers.map(([name, value]) => `wrk.headers["${name}"] = ${quoted(value)}`).join('\n')}
    ${requestLua(job.work)}
    function done(summary, latency)
      local e = summary.errors
      local failed = e.status + e.connect + e.read + e.write + e.timeout
      io.write(string.format("[[%d, %d, %f, %f, %f]]\\n", summary.requests - e.status, failed,
        summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
    end`;
}

function requestLua(work: Job['work']): string {
  if ('serial' in work) return cardsLua(work.serial, work.idempotent === true);
  const turns = 'paths' in work ? work.paths : work.bodies;
  const format =
    'paths' in work
      ? 'wrk.format("GET", turns[turn])'
      : `wrk.format("POST", ${quoted(work.path)}, nil, turns[turn])`;
  return `
    local turns = {${turns.map(quoted).join(', ')}}
    local turn = 0
    function request()
      turn = turn % #turns + 1
      return ${format}
    end`;
}

/** The same cards as \`cardBody\` gives: a counter in the test range, with its Luhn digit. */
function cardsLua(serial: number, idempotent: boolean): string {
  return `
    local serial = ${serial}
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
      serial = serial + 1
      local digits = "424242" .. string.format("%09d", serial % 1000000000)
      ${idempotent ? 'wrk.headers["svc-idempotency-key"] = "card-" .. serial' : ''}
      return wrk.format("POST", "/tokens", nil, '{"type":"card","data":{"number":"' .. digits .. luhn(digits)
        .. '","expiration_month":12,"expiration_year":2030,"cvc":"123"}}')
    end`;
}

/** A JSON string of these texts is a Lua string too: they hold no escapes but quotes and backslashes. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
