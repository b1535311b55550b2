/** Calling a reactor. One log entry precedes the run, and another one follows it. */

import { callerNow } from '../../access/authority.ts';
import { VaultError } from '../../base/errors.ts';
import { newUuid, type ReactorId, type ReactorRunId } from '../../base/ids.ts';
import type { Metrics } from '../../base/telemetry/metrics.ts';
import type { Caller } from '../../rules/caller.ts';
import { openerOf } from '../../rules/openings.ts';
import type {
  CompletedOperation,
  Decide,
  DecideOutcome,
  Effect,
  Refused,
} from '../../rules/operation.ts';
import { rowOf } from '../../rules/stored-resource.ts';
import { waitingRunCount } from '../../store/queries/reactors.ts';
import type { Row } from '../../store/tables.ts';
import { refusalWhereOff } from '../code/check.ts';
import { openReactor } from '../resource.ts';
import { type HolderOfCode, rightsIn } from '../runs/holder.ts';
import { type CodeRun, type CodeRunning, runCode } from '../runs/run.ts';
import { type CodeInput, readInput, type WrittenInput, writeInput } from './arguments.ts';
import { type CalledReactor, calledReactor, timeoutMsOfCall } from './called-reactor.ts';
import { type Invocation, invokedEntry } from './entries.ts';
import { callerOfRun, expiryOf, type RunBody, runRow } from './run-row.ts';
import { type CallToSettle, settle } from './settle.ts';
import { type StoredBytes, storageExceeded } from './stored-bytes.ts';
import type { AdmitLog } from './stored-logs.ts';

export interface ReactorCalling extends CodeRunning {
  readonly metrics: Pick<Metrics, 'reactorCall'>;
  readonly admitLog: AdmitLog;
  readonly storedBytes: StoredBytes;
}

export interface ReactorCall {
  readonly id: string;
  /** The body as the client sent it; `undefined` if there was none. */
  readonly body: unknown;
  readonly kind: 'sync' | 'async';
}

/**
 * The decision throws `not_found`; `forbidden` if code is switched off, and for tokens that the caller may not use;
 * `validation_failed` for a body that the reactor does not accept, and for expressions; `body_too_large`; the failure
 * of the code; and refusals of the tokens that its result creates.
 */
export function callReactor(tools: ReactorCalling, caller: Caller, call: ReactorCall): Decide {
  return async () => {
    const { store, clock } = tools;
    const reactor = await calledReactor(store, caller.tenant, call.id);
    const attempt = { entity: 'reactor', id: reactor.id, operation: 'invoke' } as const;
    const refusal = refusalWhereOff(tools, caller, attempt);
    if (refusal) return refusal;
    const input = readInput(reactor, call.body);
    const written = await writeInput(tools, caller, { reactor, input, now: clock.now() });
    if ('refusal' in written) return written;
    const isAsync = call.kind === 'async' || reactor.definition.runtime.async;
    const toCall = { caller, reactor, written };
    return isAsync ? callLater(tools, toCall) : callNow(tools, toCall);
  };
}

interface PermittedCall {
  readonly caller: Caller;
  readonly reactor: CalledReactor;
  readonly written: WrittenInput;
}

function callNow(tools: ReactorCalling, { caller, reactor, written }: PermittedCall): Effect {
  const call = { caller, reactor, invocation: 'sync' } as const;
  const entries = [invokedEntry(call, tools.clock.now()), ...written.entries] as const;
  return {
    change: { entries },
    reachOut: async () => {
      const run = await runReactor(tools, call, written.input);
      // Uses the caller's rights at the end of the run. If they have ended, the request is refused when it is due
      // to respond.
      const current = await callerNow({ store: tools.store, now: tools.clock.now() }, caller);
      const ended = { ...call, caller: current ?? caller };
      return withLog(tools, ended, { run, decide: settle(tools, ended, run) });
    },
  };
}

export async function runReactor(
  tools: ReactorCalling,
  { caller, reactor, invocation }: CallToSettle,
  { name, json }: CodeInput,
): Promise<CodeRun> {
  const { definition } = reactor;
  const run = await runCode(tools, {
    caller,
    code: definition.code,
    runtime: definition.runtime,
    configuration: definition.configuration,
    input: { [name]: json },
    holder: reactorHolder(reactor.id),
    hasRights: rightsIn(definition) !== undefined,
    allowedHosts: definition.allowed_hosts,
    timeoutMs: timeoutMsOfCall(reactor, invocation === 'sync' ? 'sync' : 'async'),
  });
  const { outcome, milliseconds } = run;
  tools.metrics.reactorCall({
    reactor: reactor.id,
    outcome: outcome.kind === 'failed' ? 'failed' : 'completed',
    seconds: milliseconds / 1000,
  });
  return run;
}

interface LoggedRun {
  readonly run: CodeRun;
  readonly decide: DecideOutcome;
}

/** Adds the lines that the code logged to the outcome, if there are any. */
function withLog(
  tools: ReactorCalling,
  { caller, reactor }: CallToSettle,
  { run, decide }: LoggedRun,
): DecideOutcome {
  const { clock, random } = tools;
  const { tenant } = caller;
  const log = tools.admitLog(tenant.id, run.log);
  if (log.length === 0) return decide;
  const run_id = newUuid<ReactorRunId>(random);
  // Rows must not outlive a reactor that was deleted during the call.
  return async (conflict): Promise<CompletedOperation | Refused> => {
    const outcome = await decide(conflict);
    const stored = await tools.store.get('reactors', {
      tenant_id: tenant.id,
      reactor_id: reactor.id,
    });
    if (!stored) return outcome;
    const now = clock.now();
    const row = runRow(
      { tenant, random },
      {
        tenant_id: tenant.id,
        run_id,
        reactor_id: reactor.id,
        version: 1,
        due_at: null,
        created_at: now,
        expires_at: expiryOf(now),
      },
      {
        kind: 'sync',
        caller: callerOfRun(caller),
        attempts: 1,
        isFailed: 'refusal' in outcome,
        log,
      },
    );
    // Exceeding the quota for logs does not cost the caller the result.
    if (!(await tools.storedBytes.admit(tenant, row.body.length))) return outcome;
    const { change } = outcome;
    return { ...outcome, change: { ...change, insert: { ...change.insert, reactor_runs: [row] } } };
  };
}

/** Stores the call in one commit with the entries of its tokens. The first server that finds it runs it. */
async function callLater(
  tools: ReactorCalling,
  { caller, reactor, written }: PermittedCall,
): Promise<Effect> {
  const { clock, random } = tools;
  const { tenant } = caller;
  await requireRoom(tools, caller);
  const now = clock.now();
  const run_id = newUuid<ReactorRunId>(random);
  const invocation: Invocation = `async ${run_id}`;
  const body: RunBody = {
    kind: 'async',
    caller: callerOfRun(caller),
    input: written.input,
    attempts: 0,
    isFailed: false,
    log: [],
  };
  const row: Row<'reactor_runs'> = runRow(
    { tenant, random },
    {
      tenant_id: tenant.id,
      run_id,
      reactor_id: reactor.id,
      version: 1,
      due_at: now,
      created_at: now,
      expires_at: expiryOf(now),
    },
    body,
  );
  if (!(await tools.storedBytes.admit(tenant, row.body.length))) throw storageExceeded(tenant);
  return {
    change: {
      insert: { reactor_runs: [row] },
      entries: [invokedEntry({ caller, reactor, invocation }, now), ...written.entries],
    },
    reply: { status: 202, body: { asyncReactorRequestId: run_id } },
  };
}

/** Concurrent requests may exceed the limit by their number. */
async function requireRoom({ store }: ReactorCalling, { tenant }: Caller): Promise<void> {
  const limit = tenant.quotas.reactor_run_limit;
  const [waiting] = await store.select(waitingRunCount(tenant.id));
  if ((waiting?.count ?? 0) < limit) return;
  throw new VaultError('too_many_requests', {
    public: `Of one tenant at most ${limit} asynchronous calls wait or run (quota reactor_run_limit).`,
    headers: { 'retry-after': '1' },
  });
}

/** The reactor as the holder of the code that runs. */
function reactorHolder(id: ReactorId): HolderOfCode {
  return {
    entity: 'reactor',
    id,
    lentNow: async (store, tenant) => {
      const row = await rowOf(store, 'reactors', { tenant, id });
      return rightsIn(openReactor(openerOf('load reactors', tenant), row).reveal());
    },
  };
}
