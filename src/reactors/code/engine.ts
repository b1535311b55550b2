/** What runs the code of tenants, for all that holds code. */
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
  /** False where the operator has switched code off. */
  readonly isOn: boolean;
  /** `undefined` where code is off, and where nothing would keep it apart. */
  readonly sandbox: Sandbox | undefined;
  /** The operator's: name to CommonJS source. */
  readonly modules: ReadonlyMap<string, string>;
}

/** What the system lets the vault and its processes have: of the control group (cgroup), or all there is. */
export function memoryOfVault(): number {
  return Math.min(process.constrainedMemory() || totalmem(), totalmem());
}

/**
 * Threads share what one would have, as far as they can: no tenant has all that a thread may compute with, so each may
 * run two calls. How many processes all of them have together, the budget says.
 */
function boundsOf(threads: number, all: number): Partial<PoolLimits> {
  const runningMax = Math.max(2, Math.ceil(limits.runningMax / threads));
  const runningPerTenantMax = Math.floor(runningMax / 2);
  const processes = Math.min(all, Math.max(4, Math.ceil(all / threads)));
  const processesPerTenantMax = Math.max(runningPerTenantMax, Math.floor(processes / 4));
  return { runningMax, runningPerTenantMax, processesMax: processes, processesPerTenantMax };
}

export interface CodeOptions extends Pick<CodeEngine, 'isOn' | 'modules'> {
  /** As {@link findCodeIsolation} found it. */
  readonly isolation: Isolation | undefined;
  readonly log: Pick<Log, 'warn'>;
  /** What all engines of the vault may have together. */
  readonly processes: ProcessBudget;
  /** Nobody waits for the code, which leaves half of the processes to code that callers wait for. */
  readonly isBackground?: true;
  /** That have an engine each. */
  readonly threads?: number;
}

/** No process is started before the first code. */
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

/** What the operator configured. */
interface IsolationWish {
  readonly isOn: boolean;
  readonly isolation: IsolationChoice | undefined;
}

/**
 * Finds once, before the vault listens, how code of tenants is kept apart. A process that cannot be started this way
 * later refuses its call; no weaker way is ever used.
 *
 * @returns `undefined` where code is off, and where the machine permits no isolation and the operator did not
 * accept that.
 * @throws IsolationError where the machine does not permit what the operator insists on.
 */
export async function findCodeIsolation(
  { isOn, isolation }: IsolationWish,
  find: typeof findIsolation = findIsolation,
): Promise<Isolation | undefined> {
  return isOn ? find(isolation) : undefined;
}

/** Says in the operator's log what was found, once nothing refuses the start any more. */
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
