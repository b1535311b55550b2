/** What runs the code of tenants, for all that holds code. */
import type { Log } from '../../lib/telemetry/log.ts';
import { processesMax } from '../../sandbox/limits.ts';
import { openSandbox } from '../../sandbox/open.ts';
import type { IsolationName, Sandbox } from '../../sandbox/sandbox.ts';

export interface CodeEngine {
  /** `undefined` where the operator has switched code off. */
  readonly sandbox: Sandbox | undefined;
  /** The operator's: name to CommonJS source. */
  readonly modules: ReadonlyMap<string, string>;
}

/**
 * Threads share what one would have, as far as they can: no tenant holds all processes of a thread, so each has
 * two of them.
 */
function boundsOf(threads: number): { processesMax: number; callsPerTenantMax: number } {
  const processes = Math.max(2, Math.ceil(processesMax / threads));
  return { processesMax: processes, callsPerTenantMax: Math.floor(processes / 2) };
}

export interface CodeOptions extends Pick<CodeEngine, 'modules'> {
  readonly isOn: boolean;
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** That have an engine each. */
  readonly threads?: number;
}

/** No process is started before the first code. */
export function openCode({ isOn, modules, log, threads = 1 }: CodeOptions): CodeEngine {
  const onIsolation = (name: IsolationName) => {
    const isApart = name.startsWith('namespaces');
    if (isApart) log.info('code of tenants runs in processes apart', { reason: name });
    else log.warn('code of tenants runs in processes without namespaces', { reason: name });
  };
  return { sandbox: isOn ? openSandbox(boundsOf(threads), onIsolation) : undefined, modules };
}
