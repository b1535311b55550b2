/** The sandbox: a pool of processes, and the calls that it makes in them. */

import { checkOf } from './check.ts';
import { CodeLog } from './code-log.ts';
import type { ProcessCall, ProcessEnd } from './code-process.ts';
import * as limits from './limits.ts';
import type { ChildCall } from './messages.ts';
import { createPool, type Pool, type PoolLimits, poolLimits } from './pool.ts';
import { requestsOf } from './requests.ts';
import { type Outcome, outcomeOf } from './results.ts';
import type { EndReason, Sandbox, SandboxCall, SandboxResult } from './sandbox.ts';

export function openSandbox(bounds: Partial<PoolLimits> = {}): Sandbox {
  const pool = createPool({ ...poolLimits, ...bounds });
  return {
    run: (call) => run(pool, { call, isCheck: false }),
    check: checkOf((call) => run(pool, { call, isCheck: true })),
    close: () => pool.close(),
    state: () => pool.state(),
  };
}

interface Run {
  readonly call: SandboxCall;
  readonly isCheck: boolean;
}

async function run(pool: Pool, { call, isCheck }: Run): Promise<SandboxResult> {
  const { contract, bt, code, input, timeoutMs } = call;
  const inputText = JSON.stringify(input);
  if (Buffer.byteLength(inputText) > limits.inputBytesMax) return ended('input too large');
  const settings = { contract, bt, code, isCheck, timeoutMs } satisfies Omit<ChildCall, 'input'>;
  const payload = `{"input":${inputText},${JSON.stringify(settings).slice(1)}`;
  const requests = requestsOf(call);
  const log = new CodeLog();
  const processCall: ProcessCall = {
    payload,
    modules: call.modules,
    timeoutMs,
    signal: call.signal,
    onRequest: requests.reply,
    onLog: (line) => log.add(line),
  };
  try {
    const end =
      (await runOnce(pool, call, processCall)) ?? (await runOnce(pool, call, processCall));
    return { ...outcomeFrom(end ?? { ended: 'crashed' }), log: log.lines };
  } finally {
    requests.end();
  }
}

/**
 * `undefined` where a process that was used before ended without a word of this call: whoever killed it while
 * it was idle does not take a call with it.
 */
async function runOnce(
  pool: Pool,
  { tenant }: SandboxCall,
  processCall: ProcessCall,
): Promise<ProcessEnd | undefined> {
  const lease = await pool.lease(tenant);
  if (typeof lease === 'string') return { ended: lease };
  const { process } = lease;
  try {
    const end = await process.run(processCall);
    const isLost = 'ended' in end && end.ended === 'crashed' && process.calls > 1;
    return isLost && !process.wasHeard ? undefined : end;
  } finally {
    lease.release();
  }
}

function outcomeFrom(end: ProcessEnd): Outcome {
  return 'result' in end ? outcomeOf(end.result) : { kind: 'ended', reason: end.ended };
}

function ended(reason: EndReason): SandboxResult {
  return { kind: 'ended', reason, log: [] };
}
