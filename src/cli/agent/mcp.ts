/** `strongroom mcp`: the tools of a running vault, for an agent that starts them as a command. */
import { minute } from '../../base/clock.ts';
import { version } from '../../base/installation/manifest.ts';
import { isObject, type Json } from '../../base/json.ts';
import type { ServedTools } from '../../http/mcp/protocol.ts';
import type { Profile } from '../resources/profiles.ts';
import { requestVault } from '../resources/request.ts';
import type { Command } from '../terminal/command.ts';
import { ResponseError } from '../terminal/response-error.ts';
import { keyFlags, profileIn } from './agent-key.ts';

export const mcp: Command = {
  summary:
    'Give an agent the tools of a running vault over the Model Context Protocol, on stdin and stdout, until stdin ' +
    'ends. The agent gets neither the key nor a value.',
  flags: keyFlags,
  examples: ['--key-file agent.key', '--profile agent'],
  run: async (flags, terminal) => {
    const profile = profileIn(flags, terminal);
    const served = toolsOf(profile);
    // A wrong key is found out here, and not by an agent.
    await served.list();
    const { serveOnPipes } = await import('../../http/mcp/stdio.ts');
    await serveOnPipes(served, { ...terminal, version });
    return 0;
  },
};

/** A person has ten minutes to approve a request. */
const callMsMax = 11 * minute;

/** @throws ResponseError from its methods where the vault refuses, or cannot be reached. */
function toolsOf(profile: Profile): ServedTools {
  async function send(method: string, params: Json): Promise<never> {
    const response = await requestVault(profile, {
      method: 'POST',
      path: '/mcp',
      mediaType: 'application/json',
      timeoutMs: callMsMax,
      body: { jsonrpc: '2.0', id: 1, method, params },
    });
    const result = isObject(response) ? response['result'] : undefined;
    if (isObject(result)) return result as never;
    throw new ResponseError('the response has no result; is there a vault at this address?');
  }
  return {
    list: async () => (await send('tools/list', {}))['tools'],
    call: (name, given) => send('tools/call', { name, arguments: given as Json }),
  };
}
