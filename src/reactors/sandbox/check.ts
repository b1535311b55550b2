/** Finds problems in code before it is stored, by reading it and by evaluating it in the sandbox. */
import { VaultError } from '../../base/errors.ts';
import * as limits from './limits.ts';
import { isBuiltModule } from './modules.ts';
import { requiredModules } from './required-modules.ts';
import type { CodeProblem, CodeToCheck, Sandbox, SandboxCall, SandboxResult } from './sandbox.ts';

export function checkOf(run: (call: SandboxCall) => Promise<SandboxResult>): Sandbox['check'] {
  return async ({ tenant, code, modules }) =>
    problemOfText({ code, modules }) ??
    problemOfResult(
      await run({
        tenant,
        code,
        contract: 'node-bt',
        input: {},
        bt: false,
        timeoutMs: limits.checkMsMax,
        modules,
        serve: refuse,
      }),
    );
}

/** Rejects every request: evaluation alone has no need for any. */
async function refuse(): Promise<never> {
  throw new VaultError('forbidden', { public: 'Code may send requests when it is called only.' });
}

function problemOfText({ code, modules }: Omit<CodeToCheck, 'tenant'>): CodeProblem | undefined {
  if (code.length > limits.codeLengthMax) {
    return { kind: 'too long', message: `must have at most ${limits.codeLengthMax} characters` };
  }
  const missing = requiredModules(code).find((name) => !isBuiltModule(name) && !modules.has(name));
  return missing === undefined ? undefined : noModule(missing);
}

function noModule(name: string): CodeProblem {
  const shown = JSON.stringify(name.slice(0, 100));
  return { kind: 'module', message: `requires ${shown}, which this vault does not provide` };
}

/** Quotes only a line, a column, and the name of a module. */
function problemOfResult(result: SandboxResult): CodeProblem | undefined {
  if (result.kind === 'returned') return undefined;
  if (result.kind === 'ended') return problemOfEnd(result.reason);
  const { name, errors, place: at } = result.error;
  const [text = ''] = errors['error'] ?? [];
  if (name === 'InvalidReactorFormulaError') {
    return {
      kind: 'exports no function',
      message: 'must export a function: module.exports = function (req) { … }',
    };
  }
  const [, missing] = /^ModuleNotFoundError: Cannot find module '(.*)'$/.exec(text) ?? [];
  if (missing !== undefined) return noModule(missing);
  const place = at ? ` (line ${at.line}, column ${at.column})` : '';
  if (errors['compile'] !== undefined)
    return { kind: 'does not compile', message: `does not compile${place}` };
  return { kind: 'fails', message: `throws an error when it is loaded${place}` };
}

function problemOfEnd(
  reason: Extract<SandboxResult, { kind: 'ended' }>['reason'],
): CodeProblem | undefined {
  // What is wrong with the code is found when it is called: nothing that others do keeps it from being stored.
  if (reason === 'tenant busy' || reason === 'pool full' || reason === 'no process') {
    return undefined;
  }
  if (reason === 'stopped') return { kind: 'stopped', message: 'cannot be checked any more' };
  const limit =
    reason === 'timeout' ? `takes more than ${limits.checkMsMax} ms` : `ends with "${reason}"`;
  return { kind: 'fails', message: `${limit} when it is loaded` };
}
