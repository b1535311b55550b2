/** What runs the code of tenants, for all that holds code. */
import { processesMax } from '../../sandbox/limits.ts';
import { openSandbox } from '../../sandbox/open.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';

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

/**
 * No process is started before the first code.
 * @param threads that have an engine each.
 */
export function openCode(
  { isOn, modules }: Pick<CodeEngine, 'modules'> & { readonly isOn: boolean },
  threads = 1,
): CodeEngine {
  return { sandbox: isOn ? openSandbox(boundsOf(threads)) : undefined, modules };
}
