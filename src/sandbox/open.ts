/** The sandbox: a pool of processes, and the calls that it makes in them. */

import { checkOf } from './check.ts';
import { CodeLog } from './code-log.ts';
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
  const lease = await pool.lease(call.tenant);
  if (typeof lease === 'string') return ended(lease);
  const log = new CodeLog();
  const requests = requestsOf(call);
  try {
    const end = await lease.process.run({
      payload,
      modules: call.modules,
      timeoutMs,
      signal: call.signal,
      onRequest: requests.reply,
      onLog: (line) => log.add(line),
    });
    const outcome: Outcome =
      'result' in end ? outcomeOf(end.result) : { kind: 'ended', reason: end.ended };
    return { ...outcome, log: log.lines };
  } finally {
    requests.end();
    lease.release();
  }
}

function ended(reason: EndReason): SandboxResult {
  return { kind: 'ended', reason, log: [] };
}
