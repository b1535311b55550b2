/** What runs the code of tenants, for all that holds code. */
import { openSandbox } from '../../sandbox/open.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';

export interface CodeEngine {
  /** `undefined` where the operator has switched code off. */
  readonly sandbox: Sandbox | undefined;
  /** The operator's: name to CommonJS source. */
  readonly modules: ReadonlyMap<string, string>;
}

/** No process is started before the first code. */
export function openCode({
  isOn,
  modules,
}: {
  readonly isOn: boolean;
  readonly modules: ReadonlyMap<string, string>;
}): CodeEngine {
  return { sandbox: isOn ? openSandbox() : undefined, modules };
}
