/** Calls of code in a sandbox, as tests make them. */
import type { Sandbox, SandboxCall, SandboxResult } from '../../src/reactors/sandbox/sandbox.ts';

export function callOf(code: string, more: Partial<SandboxCall> = {}): SandboxCall {
  return {
    tenant: 'tenant',
    code,
    contract: 'node-bt',
    input: { args: {}, configuration: {} },
    bt: false,
    // Longer than a busy machine takes for anything that ends.
    timeoutMs: 300_000,
    modules: new Map(),
    serve: async () => {
      throw new Error('nothing is served');
    },
    ...more,
  };
}

/** The body of an async function with `req`; what begins with MODULE is a whole module. */
export function moduleOf(body: string): string {
  if (body.startsWith('MODULE ')) return body.slice('MODULE '.length);
  return `module.exports = async function (req) { ${body} }`;
}

export async function returnedBy(sandbox: Sandbox, call: SandboxCall): Promise<unknown> {
  const result = await sandbox.run(call);
  if (result.kind === 'returned') return result.value;
  throw new Error(`it did not return: ${JSON.stringify(result)}`);
}

/** `returned`, `threw`, or the reason of an end. */
export function endOf(result: SandboxResult): string {
  return result.kind === 'ended' ? result.reason : result.kind;
}
