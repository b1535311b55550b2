/** Runs waiting asynchronous calls at least once each, even if servers stop meanwhile, and stores their results. */
import { isIntegrityError } from '../../base/errors.ts';
import type { ReactorRunId, TenantId } from '../../base/ids.ts';
import {
  type AttemptEnd,
  createLane,
  createLanes,
  type LaneAttempt,
  type RunningLane,
} from '../../queue/lanes.ts';
import { createSlots } from '../../queue/slots.ts';
import type { Caller } from '../../rules/caller.ts';
import { type DecideOutcome, perform } from '../../rules/operation.ts';
import { duePages, orphans } from '../../store/queries/due-tenants.ts';
import { rowsDue } from '../../store/queries/tenant-rows.ts';
import { failure } from '../runs/outcome.ts';
import type { CodeRun } from '../runs/run.ts';
import { failedEntry } from './entries.ts';
import { runReactor } from './react.ts';
import { callerOfWaiting, callerWithout } from './run-caller.ts';
import { expiryOf, problemOfRun, type RunResult, runRow } from './run-row.ts';
import { type CallToSettle, settle } from './settle.ts';
import { entryOfRun, type TakenRun, take, type WaitingRunTools } from './take-run.ts';

/** Most of the time a call waits for other hosts, and the pool of processes limits how many calls compute. */
const runSlots = { allMax: 12, tenantMax: 2, forFirstMin: 8 };

/** A call whose server crashes each time is not retried forever. */
const attemptsMax = 3;

/** Due calls that one query goes through to find their tenants. */
const dueRowsMax = 50_000;

export interface WaitingRuns {
  /** Wakes the tenants whose calls are due. @throws VaultError `integrity` for calls without a tenant. */
  look(): Promise<BegunRuns>;
  /** Resolves when no call of this process is running. */
  settled(): Promise<void>;
  /** Begins no more calls. Resolves when none is running. */
  stop(): Promise<void>;
}

export interface BegunRuns {
  /**
   * How many of the calls this server runs, once it has claimed all of them. A claim first searches the log, which
   * can take long, so only the call's own tenant waits for it.
   */
  readonly taken: Promise<number>;
}

/** Several servers may do this concurrently: only one of them succeeds in claiming a call. */
export function createWaitingRuns(tools: WaitingRunTools): WaitingRuns {
  const { store, tenants, clock } = tools;
  const slots = createSlots(runSlots);
  /** Calls that stay due until they are claimed. */
  const taking = new Set<ReactorRunId>();
  /** The claims that began since the latest look. */
  let claims: Promise<boolean>[] = [];

  async function claim(id: TenantId, isResting: () => boolean): Promise<LaneAttempt | undefined> {
    const claimed = Promise.withResolvers<boolean>();
    claims.push(claimed.promise);
    let taken: TakenRun | undefined;
    try {
      const tenant = await tenants.find(id);
      if (tenant === undefined) return undefined;
      // Other claims of the tenant may take all of these rows but one meanwhile.
      const rowsMax = runSlots.tenantMax;
      const due = { tenant, until: clock.now(), rowsMax, skip: 0 };
      const rows = await store.select(rowsDue('reactor_runs', 'due_at', due));
      const row = rows.find(({ run_id }) => !taking.has(run_id));
      // A claim that failed meanwhile would fail again.
      if (row === undefined || isResting()) return undefined;
      taking.add(row.run_id);
      // By the next turn of the event loop, a lane whose claim failed rests.
      const release = () => setImmediate(() => taking.delete(row.run_id));
      taken = await take(tools, tenant, row).finally(release);
    } finally {
      claimed.resolve(taken !== undefined);
    }
    const run = taken;
    return async () => run && runTaken(tools, run);
  }

  const lanes = createLanes<TenantId>();

  function laneOf(tenant: TenantId, onIdle: () => void): RunningLane {
    const atOnceMax = () => runSlots.tenantMax;
    const claimNext = () => claim(tenant, () => lane.isResting);
    const lane = createLane({ ...tools, slots }, { tenant, atOnceMax, claim: claimNext }, onIdle);
    return lane;
  }

  return {
    look: async () => {
      const begun: Promise<boolean>[] = [];
      claims = begun;
      let hasOrphans = false;
      const due = { ...dueCalls, until: clock.now(), rowsMax: dueRowsMax };
      for await (const page of duePages(store, due)) {
        hasOrphans ||= page.hasOrphans;
        for (const { id } of page.tenants) lanes.wake(id, (onIdle) => laneOf(id, onIdle));
      }
      if (hasOrphans) throw orphans(dueCalls);
      return { taken: Promise.all(begun).then((all) => all.filter((isTaken) => isTaken).length) };
    },
    settled: lanes.settled,
    stop: lanes.stop,
  };
}

const dueCalls = { table: 'reactor_runs', column: 'due_at' } as const;

async function runTaken(tools: WaitingRunTools, taken: TakenRun): Promise<AttemptEnd | undefined> {
  const { tenant, row, body, reactor } = taken;
  const callBy = (caller: Caller | undefined) =>
    ({
      caller: caller ?? callerWithout(tenant, body.caller),
      reactor,
      invocation: `async ${row.run_id}`,
    }) as const;
  const { input } = body;
  const caller = await callerNow(tools, taken);
  const call = callBy(caller);
  const end = (ended: FinishedCall) => finish(tools, taken, ended).then(() => undefined);
  if (caller === undefined) return end({ call, run: withdrawn });
  if (body.attempts > attemptsMax || input === undefined) return end({ call, run: abandoned });
  const run = await runReactor(tools, call, input);
  if (isUnrun(run)) {
    await release(tools, taken);
    return { isPostponed: true };
  }
  if ((await tools.tenants.find(tenant.id)) === undefined) return undefined;
  // Uses the rights at the end of the run: a key may have been revoked while the code ran.
  const atEnd = await callerNow(tools, taken);
  const shown = atEnd ? run : { ...run, outcome: withdrawn.outcome };
  return end({ call: callBy(atEnd), run: shown });
}

/** Also `undefined` if the row that grants the rights was altered outside the vault: it cannot be trusted. */
async function callerNow(
  { store, clock, onFailure }: WaitingRunTools,
  { tenant, body }: TakenRun,
): Promise<Caller | undefined> {
  const { caller: run } = body;
  try {
    return await callerOfWaiting(store, tenant, { run, now: clock.now() });
  } catch (error) {
    if (!isIntegrityError(error)) throw error;
    onFailure(error);
    return undefined;
  }
}

const abandoned: CodeRun = {
  outcome: {
    kind: 'failed',
    failure: failure(`it was begun ${attemptsMax} times, and its server stopped each time`),
  },
  log: [],
  milliseconds: 0,
  hasActed: true,
};

/** An asynchronous call does not outlive the caller's key, session, or permission. */
const withdrawn: CodeRun = {
  outcome: {
    kind: 'failed',
    failure: failure(
      'the key, the session or the application that asked for it is gone, or may not call reactors any more',
    ),
  },
  log: [],
  milliseconds: 0,
  hasActed: false,
};

/** The vault is stopping or had no free process, so the code had no effect and can run again. */
function isUnrun({ outcome }: CodeRun): boolean {
  if (outcome.kind !== 'failed') return false;
  return /^(?:unavailable|overloaded|too_many_requests)$/.test(outcome.failure.error.code);
}

async function release(tools: WaitingRunTools, { tenant, row, body }: TakenRun): Promise<void> {
  const now = tools.clock.now();
  const columns = { ...row, version: row.version + 1, due_at: now };
  // The failed start is not the fault of the call, so it does not count as an attempt.
  const waiting = runRow({ ...tools, tenant }, columns, { ...body, attempts: body.attempts - 1 });
  await tools.store.commit({
    replace: { reactor_runs: [waiting] },
    entries: [entryOfRun(now, { row, operation: 'interrupt' })],
  });
}

interface FinishedCall {
  readonly call: CallToSettle;
  readonly run: CodeRun;
}

/** How entries describe the operation of an asynchronous call. */
const calling = { permission: 'reactor:invoke', method: 'POST', path: '/reactors' } as const;

/** One change stores the result, tokens, and entries. If the reactor was deleted, only the entry is stored. */
async function finish(
  tools: WaitingRunTools,
  { tenant, row, body }: TakenRun,
  { call, run }: FinishedCall,
): Promise<void> {
  const { clock, store } = tools;
  const decide: DecideOutcome = settle(tools, call, run);
  const log = tools.admitLog(tenant.id, run.log);
  const performing = { store, actor: call.caller, clock, route: calling };
  await perform(performing, async (conflict) => {
    const ended = { now: clock.now(), milliseconds: run.milliseconds };
    if (conflict?.startsWith('reactor_runs')) {
      const reason = 'the reactor was deleted, or another server was faster';
      return { change: { entries: [failedEntry(call, ended, reason)] }, reply: undefined };
    }
    const outcome = await decide(conflict);
    const isFailed = 'refusal' in outcome;
    const result: RunResult = isFailed
      ? { problem: problemOfRun(outcome.refusal) }
      : { reply: outcome.reply };
    const { input: _done, ...rest } = body;
    const columns = {
      ...row,
      version: row.version + 1,
      due_at: null,
      expires_at: expiryOf(ended.now),
    };
    const done = runRow({ ...tools, tenant }, columns, { ...rest, result, isFailed, log });
    const { change } = outcome;
    const replace = { ...change.replace, reactor_runs: [done] };
    const end = entryOfRun(ended.now, { row, operation: 'end' });
    return { change: { ...change, replace, entries: [...change.entries, end] }, reply: undefined };
  });
}
