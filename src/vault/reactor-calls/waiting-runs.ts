/** Asynchronous calls that wait: each is run at least once, whatever stops meanwhile, and its result stored. */
import { type Instant, instantAfter, second } from '../../lib/clock.ts';
import { VaultError } from '../../lib/errors.ts';
import type { TenantId } from '../../lib/ids.ts';
import type { LogEntry } from '../../lib/log-chain/entries.ts';
import type { Caller } from '../../rules/caller.ts';
import { alteredBeside, detailed, systemEntry } from '../../rules/log-entries.ts';
import { type DecideOutcome, perform } from '../../rules/operation.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import { tenantsDue } from '../../store/queries/due-tenants.ts';
import { rowsDue } from '../../store/queries/tenant-rows.ts';
import type { Row } from '../../store/tables.ts';
import { failure } from '../code/outcome.ts';
import type { CodeRun } from '../code/run.ts';
import { type CalledReactor, calledReactor, timeoutMsOfCall } from './called-reactor.ts';
import { failedEntry } from './entries.ts';
import { inTurn } from './in-turn.ts';
import { type ReactorCalling, runReactor } from './react.ts';
import { callerOfWaiting, callerWithout } from './run-caller.ts';
import {
  expiryOf,
  openRun,
  problemOfRun,
  type RunBody,
  type RunResult,
  runRow,
} from './run-row.ts';
import { type CallToSettle, settle } from './settle.ts';
import { isWrittenBack } from './written-back.ts';

export interface WaitingRunTools extends ReactorCalling {
  readonly tenants: Tenants;
  /** Unless it can be done all the same, the call is tried again once its lease has ended. */
  readonly onFailure: (error: unknown) => void;
}

/** Under way at once in this process, of all tenants and of one. */
const runsMax = 4;
const runsOfTenantMax = 2;

/** Calls looked at to find the tenants they belong to. */
const dueRowsMax = 50_000;

/** A call whose server vanishes each time is not tried for ever. */
const attemptsMax = 3;

/** After the time limit of the code, and before another server may run it as well. */
const leaseMarginMs = 30 * second;

export interface WaitingRuns {
  /** Begins what is due, as far as there is room. @returns how many were begun. */
  begin(): Promise<number>;
  /** How many calls have ended: after each, another one may have room. */
  ended(): number;
  /** Resolves when nothing that was begun is under way. */
  settled(): Promise<void>;
}

/** Several servers may do this at once: of those that take one call, one succeeds. */
export function createWaitingRuns(tools: WaitingRunTools): WaitingRuns {
  const { store, tenants, clock } = tools;
  const active = new Set<Promise<void>>();
  const activeOf = new Map<TenantId, number>();
  let ended = 0;
  /** The tenant of the call that was begun last: those after it come first. */
  let last: TenantId | undefined;

  const count = (id: TenantId, change: 1 | -1) => {
    const left = (activeOf.get(id) ?? 0) + change;
    if (left > 0) activeOf.set(id, left);
    else activeOf.delete(id);
  };

  function start(taken: TakenRun): void {
    const { id } = taken.tenant;
    count(id, 1);
    const work = runTaken(tools, taken)
      .catch(tools.onFailure)
      .finally(() => {
        count(id, -1);
        active.delete(work);
        ended += 1;
      });
    active.add(work);
  }

  return {
    begin: async () => {
      let begun = 0;
      if (active.size >= runsMax) return 0;
      const column = { table: 'reactor_runs', column: 'due_at' } as const;
      const looked = { until: clock.now(), rowsMax: dueRowsMax, skip: 0 };
      const due = await tenantsDue(store, { ...column, ...looked });
      for (const id of inTurn(due.map(({ id }) => id).sort(), last)) {
        if (active.size >= runsMax) break;
        const room = Math.min(runsMax - active.size, runsOfTenantMax - (activeOf.get(id) ?? 0));
        const tenant = room > 0 ? await tenants.find(id) : undefined;
        if (tenant === undefined) continue;
        const due = { tenant, until: clock.now(), rowsMax: room, skip: 0 };
        for (const row of await store.select(rowsDue('reactor_runs', 'due_at', due))) {
          const taken = await take(tools, tenant, row);
          if (taken === undefined) continue;
          start(taken);
          last = id;
          begun += 1;
        }
      }
      return begun;
    },
    ended: () => ended,
    settled: async () => {
      await Promise.allSettled(active);
    },
  };
}

interface TakenRun {
  readonly tenant: Tenant;
  /** In the version in which it is under way. */
  readonly row: Row<'reactor_runs'>;
  readonly body: RunBody;
  readonly reactor: CalledReactor;
}

/** `undefined` where another server was faster, or the call cannot be run and is done with. */
async function take(
  tools: WaitingRunTools,
  tenant: Tenant,
  row: Row<'reactor_runs'>,
): Promise<TakenRun | undefined> {
  const { store, clock, random } = tools;
  const opened = await openedRun(tools, tenant, row);
  if (opened === undefined) return undefined;
  const { reactor } = opened;
  const now = clock.now();
  const body = { ...opened.body, attempts: opened.body.attempts + 1 };
  const leaseMs = timeoutMsOfCall(reactor, 'async') + leaseMarginMs;
  const columns = { ...row, version: row.version + 1, due_at: instantAfter(now, leaseMs) };
  const taken = runRow({ tenant, random }, columns, body);
  const entry = entryOfRun(now, { row, operation: 'start' });
  const { conflict } = await store.commit({
    replace: { reactor_runs: [taken] },
    entries: [entry],
  });
  return conflict === undefined ? { tenant, row: taken, body, reactor } : undefined;
}

/**
 * What was altered in the database or written back to it, or has waited for a day, is removed, so that it stops no
 * other call; the log says so.
 */
async function openedRun(
  { store, clock, onFailure }: WaitingRunTools,
  tenant: Tenant,
  row: Row<'reactor_runs'>,
): Promise<Pick<TakenRun, 'body' | 'reactor'> | undefined> {
  try {
    const body = openRun(tenant, row).reveal();
    if (row.expires_at <= clock.now()) throw new VaultError('not_found', { public: expired });
    const reactor = await calledReactor(store, tenant, row.reactor_id);
    if (await isWrittenBack(store, row)) throw writtenBack(row);
    return { body, reactor };
  } catch (error) {
    const isGone = error instanceof VaultError && /^(?:integrity|not_found)$/.test(error.code);
    if (!isGone) throw error;
    const isAltered = error.code === 'integrity';
    if (isAltered) onFailure(error);
    const entry = entryOfRun(clock.now(), { row, operation: 'fail' });
    const failed = { ...entry, result: 'failed' } as const;
    await store.commit({
      remove: { reactor_runs: [row] },
      entries: [isAltered ? detailed(failed, `it was ${alteredBeside}`) : failed],
    });
    return undefined;
  }
}

function writtenBack({ run_id: id }: Row<'reactor_runs'>): VaultError {
  return new VaultError('integrity', {
    public: 'A stored value failed its integrity check.',
    internal: `an older version of the reactor_run ${id} was written back outside the vault`,
    altered: { entity: 'reactor_run', id },
  });
}

const expired = 'The call has waited for too long.';

interface RunFact {
  readonly row: Row<'reactor_runs'>;
  readonly operation: 'start' | 'interrupt' | 'end' | 'fail';
}

/** About the row itself, whose version it records: see `written-back.ts`. */
function entryOfRun(at: Instant, { row, operation }: RunFact): LogEntry {
  const { tenant_id: tenant, run_id: id, reactor_id } = row;
  const entry = systemEntry({ tenant, at, entity: 'reactor_run', id, operation });
  return detailed(entry, `reactor ${reactor_id}`);
}

async function runTaken(tools: WaitingRunTools, taken: TakenRun): Promise<void> {
  const { tenant, row, body, reactor } = taken;
  const callNow = async () => {
    const caller = await callerNow(tools, taken);
    return { caller, reactor, invocation: `async ${row.run_id}` } as const;
  };
  const { input } = body;
  const call = await callNow();
  if (body.attempts > attemptsMax || input === undefined) {
    return finish(tools, taken, { call, run: abandoned });
  }
  const run = await runReactor(tools, call, input);
  if (isUnrun(run)) return release(tools, taken);
  // With the rights of the end: a key may have been taken away while the code ran.
  if (await tools.tenants.find(tenant.id))
    await finish(tools, taken, { call: await callNow(), run });
}

/** Without rights where what gives them was altered outside the vault: it cannot say what they are. */
async function callerNow(
  { store, clock, onFailure }: WaitingRunTools,
  { tenant, body }: TakenRun,
): Promise<Caller> {
  const { caller: run } = body;
  try {
    return await callerOfWaiting(store, tenant, { run, now: clock.now() });
  } catch (error) {
    if (!(error instanceof VaultError) || error.code !== 'integrity') throw error;
    onFailure(error);
    return callerWithout(tenant, run);
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

/** The vault stops, or had no process: nothing of it was done that must not be done again. */
function isUnrun({ outcome }: CodeRun): boolean {
  if (outcome.kind !== 'failed') return false;
  return /^(?:unavailable|too_many_requests)$/.test(outcome.failure.error.code);
}

async function release(tools: WaitingRunTools, { tenant, row, body }: TakenRun): Promise<void> {
  const now = tools.clock.now();
  const columns = { ...row, version: row.version + 1, due_at: now };
  // It is not its fault.
  const waiting = runRow({ ...tools, tenant }, columns, { ...body, attempts: body.attempts - 1 });
  await tools.store.commit({
    replace: { reactor_runs: [waiting] },
    entries: [entryOfRun(now, { row, operation: 'interrupt' })],
  });
}

interface Finished {
  readonly call: CallToSettle;
  readonly run: CodeRun;
}

/** Result, tokens and entries are one change. Of a reactor that was deleted meanwhile only the entry is left. */
async function finish(
  tools: WaitingRunTools,
  { tenant, row, body }: TakenRun,
  { call, run }: Finished,
): Promise<void> {
  const { clock, store } = tools;
  const decide: DecideOutcome = settle(tools, call, run);
  const log = tools.admitLog(tenant.id, run.log);
  await perform(store, async (conflict) => {
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
