/** Calls of tools: each gives a result, and a failure is a problem document. */
import type { TSchema } from 'typebox';
import { VaultError } from '../../base/errors.ts';
import { isObject, type Json } from '../../base/json.ts';
import { problemOf, vaultErrorOf } from '../protocol/problem.ts';
import { compileValidator } from '../protocol/validation.ts';
import type { ServedTools } from './protocol.ts';
import type { AgentTool, ToolTools } from './tool.ts';

/** Characters of a result: it is held in memory, and a model has to read it. */
const toolResultLengthMax = 524_288;

/** As the protocol lists a tool. */
export interface ListedTool {
  readonly tool: AgentTool;
  /** Of its input, as JSON. */
  readonly inputSchema: { readonly type: 'object' } & Readonly<Record<string, unknown>>;
}

export function createToolCalls(
  listed: readonly ListedTool[],
  onFailure: (name: string, failure: VaultError) => void,
): (tools: ToolTools) => ServedTools {
  const byName = new Map(
    listed.map(({ tool }) => [
      tool.name,
      { tool, validate: compileValidator(tool.input as TSchema, 'body') },
    ]),
  );

  async function resultOf(tools: ToolTools, name: string, given: unknown): Promise<object> {
    const found = byName.get(name);
    if (!found) throw new VaultError('not_found', { public: 'There is no such tool.' });
    const validated = found.validate(given);
    if ('error' in validated) throw validated.error;
    return found.tool.run(tools, validated.value as never);
  }

  return (tools) => ({
    list: async () =>
      listed.map(({ tool: { name, description }, inputSchema }) => ({
        name,
        description,
        inputSchema: inputSchema as never,
      })),
    call: async (name, given) => {
      try {
        const result = await resultOf(tools, name, given);
        return isProblem(result) ? { ...shown(result), isError: true } : shown(result);
      } catch (error) {
        const failure = vaultErrorOf(error);
        if (failure.code === 'internal') onFailure(name, failure);
        return { ...shown(problemOf(failure)), isError: true };
      }
    },
  });
}

/** Of the vault, also where it is the response to a request that a tool sent. */
export function isProblem(result: unknown): result is object {
  return (
    isObject(result) &&
    typeof result['type'] === 'string' &&
    result['type'].startsWith('urn:strongroom:problem:')
  );
}

/** For clients that read text, and for those that read JSON. */
function shown(result: object) {
  const text = JSON.stringify(result);
  if (text.length > toolResultLengthMax) {
    throw new VaultError('bad_gateway', { public: 'The result is too large; ask for less.' });
  }
  return {
    content: [{ type: 'text' as const, text }],
    structuredContent: JSON.parse(text) as { [name: string]: Json },
  };
}
