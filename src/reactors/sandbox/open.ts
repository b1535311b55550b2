/** The sandbox: a pool of processes, and the calls that run in them. */

import { checkOf } from './check.ts';
import { CodeLog } from './code-log.ts';
import type { ProcessCall } from './code-process.ts';
import type { Isolation } from './isolation.ts';
import * as limits from './limits.ts';
import type { ChildCall } from './messages.ts';
import {
  type CallOwner,
  checkPoolLimits,
  createPool,
  type PoolLimits,
  type ProcessPool,
  poolLimits,
} from './pool.ts';
import type { ProcessBudget } from './process-budget.ts';
import { requestsOf } from './requests.ts';
import { outcomeOf, type RunOutcome } from './results.ts';
import type { EndReason, Sandbox, SandboxCall, SandboxResult } from './sandbox.ts';

export interface SandboxOptions {
  /** Replaces the default limits. */
  readonly bounds?: Partial<PoolLimits>;
  /** The limit for all sandboxes of the vault together. */
  readonly processes?: ProcessBudget | undefined;
  /** Called each time the system refuses to lower the priority of code. */
  readonly onPriorityRefused?: () => void;
  /** A monotonic clock in milliseconds, by which tenants are forgiven what they have computed. */
  readonly now?: () => number;
}

/** @param isolation used for every process while the sandbox is open. */
export function openSandbox(
  isolation: Isolation,
  { bounds = {}, processes, onPriorityRefused, now }: SandboxOptions = {},
): Sandbox {
  const options = { isolation, onPriorityRefused, now };
  const calls = createPool({
    ...options,
    bounds: { ...poolLimits, ...bounds },
    processes: processes?.calls,
  });
  const checks = createPool({ ...options, bounds: checkPoolLimits, processes: processes?.checks });
  return {
    run: (call) => run(calls, { call, isCheck: false }),
    check: checkOf((call) => run(checks, { call, isCheck: true })),
    close: async () => {
      await Promise.all([calls.close(), checks.close()]);
    },
    state: () => calls.state(),
  };
}

interface SandboxRun {
  readonly call: SandboxCall;
  readonly isCheck: boolean;
}

async function run(pool: ProcessPool, { call, isCheck }: SandboxRun): Promise<SandboxResult> {
  const { contract, bt, code, input, timeoutMs } = call;
  const inputText = JSON.stringify(input);
  if (Buffer.byteLength(inputText) > limits.inputBytesMax) return ended('input too large');
  const settings = { contract, bt, code, isCheck, timeoutMs } satisfies Omit<ChildCall, 'input'>;
  const payload = `{"input":${inputText},${JSON.stringify(settings).slice(1)}`;
  const requests = requestsOf(call);
  const log = new CodeLog();
  const reading = new ReadingTime();
  const processCall: ProcessCallOfRun = {
    payload,
    modules: call.modules,
    timeoutMs,
    signal: call.signal,
    onRequest: (request) => reading.measure(() => requests.reply(request)),
    onLog: (line) => log.add(line),
  };
  try {
    const owner: CallOwner = [call.tenant, ...(call.parties ?? [])];
    const attempt = { owner, processCall, reading };
    const outcome = (await runOnce(pool, attempt)) ?? (await runOnce(pool, attempt));
    return { ...(outcome ?? { kind: 'ended', reason: 'crashed' }), log: log.lines };
  } finally {
    requests.end();
  }
}

/**
 * `undefined` if a reused process ended without any message of this call. In that case it was killed while idle, and
 * the call can be retried in another process.
 */
async function runOnce(pool: ProcessPool, attempt: RunAttempt): Promise<RunOutcome | undefined> {
  const { owner, processCall, reading } = attempt;
  const lease = await pool.lease(owner);
  if (typeof lease === 'string') return { kind: 'ended', reason: lease };
  const { process } = lease;
  try {
    const end = await process.run({
      ...processCall,
      onWaiting: lease.pause,
      onRequest: async (request) => {
        const reply = await processCall.onRequest(request);
        await lease.resume();
        return reply;
      },
    });
    if ('result' in end) return reading.measure(() => outcomeOf(end.result));
    const isLost = end.ended === 'crashed' && process.calls > 1 && !process.wasHeard;
    return isLost ? undefined : { kind: 'ended', reason: end.ended };
  } finally {
    const { restMs } = reading;
    if (restMs === 0 || !process.isAlive) lease.release();
    else setTimeout(lease.release, restMs).unref();
  }
}

type ProcessCallOfRun = Omit<ProcessCall, 'onWaiting'>;

interface RunAttempt {
  readonly owner: CallOwner;
  readonly processCall: ProcessCallOfRun;
  readonly reading: ReadingTime;
}

/** How long this thread was blocked by reading the messages of a process. */
class ReadingTime {
  #ms = 0;

  measure<T>(read: () => T): T {
    const begin = performance.now();
    const result = read();
    this.#ms += performance.now() - begin;
    return result;
  }

  get restMs(): number {
    return this.#ms < limits.readingMsFree ? 0 : this.#ms * limits.restPerReading;
  }
}

function ended(reason: EndReason): SandboxResult {
  return { kind: 'ended', reason, log: [] };
}
