/** Runs waiting asynchronous calls at least once each, even if servers stop meanwhile, and stores their results. */
import { type Instant, second } from '../../base/clock.ts';
import { isIntegrityError } from '../../base/errors.ts';
import type { ReactorRunId, TenantId } from '../../base/ids.ts';
import type { Caller } from '../../rules/caller.ts';
import { type DecideOutcome, perform } from '../../rules/operation.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { tenantsWithRunsDue } from '../../store/queries/reactors.ts';
import { rowsDue } from '../../store/queries/tenant-rows.ts';
import type { Row } from '../../store/tables.ts';
import { failure } from '../runs/outcome.ts';
import type { CodeRun } from '../runs/run.ts';
import { failedEntry } from './entries.ts';
import { runReactor } from './react.ts';
import { callerOfWaiting, callerWithout } from './run-caller.ts';
import { expiryOf, problemOfRun, type RunResult, runRow } from './run-row.ts';
import { type CallToSettle, settle } from './settle.ts';
import { entryOfRun, type TakenRun, take, type WaitingRunTools } from './take-run.ts';
import { tenantsInTurn } from './turns-of-tenants.ts';

/**
 * Concurrent calls in this process, in total and per tenant. Most of the time a call waits for other hosts, and the
 * pool of processes limits how many compute. The last slots are for tenants without a running call.
 */
const runsMax = 12;
const runsOfTenantMax = 2;
const runsOfOthersMax = 8;

/** A call whose server crashes each time is not retried forever. */
const attemptsMax = 3;

/** The delay after a tenant's call fails to start, before its next attempt. */
export const retryMs = 10 * second;

export interface WaitingRuns {
  /** Begins the calls that are due, as far as there is room. If it throws, no tenant's calls were begun. */
  begin(): Promise<BegunRuns>;
  /** How many calls have ended or failed to start. After each, there may be room for another one. */
  ended(): number;
  /** Resolves when no call of this process is running. */
  settled(): Promise<void>;
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
  const active = new Set<Promise<void>>();
  const activeOf = new Map<TenantId, number>();
  /** Calls that are active, and stay due until they are claimed. */
  const taking = new Set<ReactorRunId>();
  const failedAt = new Map<TenantId, Instant>();
  let ended = 0;
  /** The last tenant that was considered: the search continues after it. */
  let last: TenantId | undefined;

  const roomOf = (id: TenantId) => {
    const own = activeOf.get(id) ?? 0;
    return Math.min((own === 0 ? runsMax : runsOfOthersMax) - active.size, runsOfTenantMax - own);
  };

  const count = (id: TenantId, change: 1 | -1) => {
    const left = (activeOf.get(id) ?? 0) + change;
    if (left > 0) activeOf.set(id, left);
    else activeOf.delete(id);
  };

  function fail(id: TenantId, error: unknown): undefined {
    failedAt.set(id, clock.now());
    tools.onFailure(error);
  }

  function forgetFailures(): void {
    const now = clock.now();
    // The clock may be set back.
    for (const [id, at] of failedAt) if (Math.abs(now - at) >= retryMs) failedAt.delete(id);
  }

  /** @returns whether the call was claimed. The promise is not awaited here. */
  function start(tenant: Tenant, row: Row<'reactor_runs'>): Promise<boolean> {
    const { id } = tenant;
    count(id, 1);
    taking.add(row.run_id);
    const taken = take(tools, tenant, row)
      .catch((error) => fail(id, error))
      .finally(() => taking.delete(row.run_id));
    const work = taken
      .then((run) => run && runTaken(tools, run))
      .catch(tools.onFailure)
      .finally(() => {
        count(id, -1);
        active.delete(work);
        ended += 1;
      });
    active.add(work);
    return taken.then((run) => run !== undefined);
  }

  async function beginOf(id: TenantId): Promise<Promise<boolean>[]> {
    const tenant = await tenants.find(id);
    if (tenant === undefined) return [];
    // Reads as many rows as may run at once, because some of them may already be in `taking`.
    const due = { tenant, until: clock.now(), rowsMax: runsOfTenantMax, skip: 0 };
    const rows = await store.select(rowsDue('reactor_runs', 'due_at', due));
    const started: Promise<boolean>[] = [];
    for (const row of rows) {
      if (roomOf(id) > 0 && !taking.has(row.run_id)) started.push(start(tenant, row));
    }
    return started;
  }

  return {
    begin: async () => {
      const started: Promise<boolean>[] = [];
      let failures = 0;
      forgetFailures();
      const due = active.size < runsMax ? await store.scan(tenantsWithRunsDue(clock.now())) : [];
      for (const id of tenantsInTurn(due.map(({ owner }) => owner).sort(), last)) {
        // A failure also counts against the limit, so that a pass ends soon if every attempt fails.
        if (active.size + failures >= runsMax) break;
        // Updated even if the tenant fails: a tenant with unreadable rows must not come first forever.
        last = id;
        if (roomOf(id) <= 0 || failedAt.has(id)) continue;
        try {
          started.push(...(await beginOf(id)));
        } catch (error) {
          fail(id, error);
          failures += 1;
          ended += 1;
        }
      }
      const taken = Promise.all(started).then((all) => all.filter((isTaken) => isTaken).length);
      return { taken };
    },
    ended: () => ended,
    settled: async () => {
      await Promise.allSettled(active);
    },
  };
}

async function runTaken(tools: WaitingRunTools, taken: TakenRun): Promise<void> {
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
  if (caller === undefined) return finish(tools, taken, { call, run: withdrawn });
  if (body.attempts > attemptsMax || input === undefined) {
    return finish(tools, taken, { call, run: abandoned });
  }
  const run = await runReactor(tools, call, input);
  if (isUnrun(run)) return release(tools, taken);
  if ((await tools.tenants.find(tenant.id)) === undefined) return;
  // Uses the rights at the end of the run: a key may have been revoked while the code ran.
  const atEnd = await callerNow(tools, taken);
  const shown = atEnd ? run : { ...run, outcome: withdrawn.outcome };
  await finish(tools, taken, { call: callBy(atEnd), run: shown });
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
