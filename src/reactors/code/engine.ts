/** Runs tenants' code for every entity that contains code. */
import { totalmem } from 'node:os';
import type { Log } from '../../base/telemetry/log.ts';
import type { Isolation, IsolationChoice } from '../sandbox/isolation.ts';
import * as limits from '../sandbox/limits.ts';
import { openSandbox } from '../sandbox/open.ts';
import type { PoolLimits } from '../sandbox/pool.ts';
import { findIsolation } from '../sandbox/probe.ts';
import type { ProcessBudget } from '../sandbox/process-budget.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';

export interface CodeEngine {
  /** False if the operator has switched code off. */
  readonly isOn: boolean;
  /** `undefined` if code is off, or if no isolation is available. */
  readonly sandbox: Sandbox | undefined;
  /** The operator's modules, from name to CommonJS source. */
  readonly modules: ReadonlyMap<string, string>;
}

/** The memory available to the vault and its processes: the limit of the control group (cgroup), or all memory. */
export function memoryOfVault(): number {
  return Math.min(process.constrainedMemory() || totalmem(), totalmem());
}

/**
 * Divides the limits of one sandbox among threads. No tenant may use all of a thread's slots, so each thread may run
 * at least two calls. The budget limits the total number of processes.
 */
function boundsOf(threads: number, all: number): Partial<PoolLimits> {
  const runningMax = Math.max(2, Math.ceil(limits.runningMax / threads));
  const runningPerTenantMax = Math.floor(runningMax / 2);
  const processes = Math.min(all, Math.max(4, Math.ceil(all / threads)));
  const processesPerTenantMax = Math.max(runningPerTenantMax, Math.floor(processes / 4));
  return { runningMax, runningPerTenantMax, processesMax: processes, processesPerTenantMax };
}

export interface CodeOptions extends Pick<CodeEngine, 'isOn' | 'modules'> {
  /** The result of {@link findCodeIsolation}. */
  readonly isolation: Isolation | undefined;
  readonly log: Pick<Log, 'warn'>;
  /** The limit on processes for all engines of the vault together. */
  readonly processes: ProcessBudget;
  /** No client waits for the code, so half of the processes stay free for code for which clients wait. */
  readonly isBackground?: true;
  /** How many threads have an engine each. */
  readonly threads?: number;
}

/** Starts no process before the first code runs. */
export function openCode(options: CodeOptions): CodeEngine {
  const { isOn, modules, isolation, log, processes, isBackground, threads = 1 } = options;
  if (!isOn || isolation === undefined) return { isOn, sandbox: undefined, modules };
  let isWarned = false;
  const onPriorityRefused = () => {
    if (!isWarned) log.warn(priorityRefused);
    isWarned = true;
  };
  const all = isBackground ? Math.ceil(processes.calls.max / 2) : processes.calls.max;
  const bounds = boundsOf(threads, all);
  const sandbox = openSandbox(isolation, { bounds, processes, onPriorityRefused });
  return { isOn, sandbox, modules };
}

const priorityRefused =
  'the system does not let the vault lower the priority of processes with code of tenants (setpriority)';

/** The operator's configuration. */
interface IsolationWish {
  readonly isOn: boolean;
  readonly isolation: IsolationChoice | undefined;
}

/**
 * Determines the isolation of tenants' code once, before the vault listens. If a process later cannot be started this
 * way, its call is refused; the vault never falls back to a weaker isolation.
 *
 * @returns `undefined` if code is off, and if the machine permits no isolation and the operator did not accept that.
 * @throws IsolationError if the machine does not permit the isolation that the operator requires.
 */
export async function findCodeIsolation(
  { isOn, isolation }: IsolationWish,
  find: typeof findIsolation = findIsolation,
): Promise<Isolation | undefined> {
  return isOn ? find(isolation) : undefined;
}

/** Logs the result for the operator, once nothing can refuse the start any more. */
export function sayCodeIsolation(
  { isOn }: Pick<IsolationWish, 'isOn'>,
  found: Isolation | undefined,
  log: Pick<Log, 'info' | 'warn'>,
): void {
  if (!isOn) return;
  if (found === undefined) {
    log.warn(
      'code of tenants is not run: this machine permits no isolation of its processes. To run it without, set ' +
        'STRONGROOM_REACTOR_ISOLATION=none',
    );
    return;
  }
  const { name, isFiltered } = found;
  const reason = isFiltered ? `${name}, system call filter` : name;
  if (name === 'none')
    log.warn('code of tenants runs in processes without any isolation', { reason });
  else if (name.startsWith('namespaces')) {
    log.info('code of tenants runs in processes apart', { reason });
  } else log.warn('code of tenants runs in processes without namespaces', { reason });
}
