/** `/mcp`: the tools for agents, over the Streamable HTTP of the Model Context Protocol, without sessions. */
import Type from 'typebox';
import { VaultError } from '../../base/errors.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { RequestAdmission } from '../limits/admission.ts';
import type { Holder } from '../limits/rate-limit.ts';
import { checkMediaType, readBody } from '../protocol/body.ts';
import { type Handle, jsonMediaType, type RequestContext } from '../protocol/request-context.ts';
import type { WholeRoute } from '../protocol/route.ts';
import { createToolCalls, type ListedTool } from './call-tool.ts';
import {
  createPerformOperation,
  type OperationPerforming,
  turnOfTool,
} from './perform-operation.ts';
import type { OpenForTool } from './tool-request.ts';
import { sendForTool } from './tool-request.ts';

export const mcpPath = '/mcp';

/** Requests to it are counted, and refused, as those of any route. */
export const mcpRoute = { method: 'POST', path: mcpPath } as const;

const admitted = {
  ...mcpRoute,
  permission: 'any key',
  kinds: ['private'],
  body: Type.Unknown(),
  reply: { status: 200 },
  handle: () => {
    throw new TypeError('its requests are handled by the protocol');
  },
} as const satisfies WholeRoute;

export interface McpOptions extends OperationPerforming {
  readonly admission: RequestAdmission;
  /** Called with the first request: most vaults never have one. */
  readonly tools: () => Promise<readonly ListedTool[]>;
  readonly openForTool: OpenForTool;
  readonly version: string;
  readonly log: Log;
}

export function createMcp(options: McpOptions): Handle {
  const { admission, openForTool, version } = options;
  const limits = options.rateLimits(admitted);
  const performOperation = createPerformOperation(options);
  let loaded: Promise<ReturnType<typeof createToolCalls>> | undefined;
  const onFailure = (tool: string, { message }: VaultError) =>
    options.log.error(`the tool ${tool} failed`, { reason: message });

  return async (context) => {
    refusePages(context);
    const sender = admission.senderOf(context);
    await limits.byAddress(sender, context);
    const count = (holder: Holder) => limits.byKey({ ...sender, holder }, context);
    const caller = await admission.admit(admitted, context, count);
    context.caller = caller;
    const { apiKey } = context;
    // People who act as an application have no key that an agent could hold.
    if (caller.key === undefined || apiKey === undefined) throw needsKey();
    checkMediaType(admitted, context);
    await readBody(admitted, context);
    if (Array.isArray(context.body)) throw oneMessage();
    // The rest waits for what is loaded below, so the turn in which the body was read is over.
    const turn = context.share?.turn();
    if (turn) await turn;
    const gone = new AbortController();
    context.response.once('close', () => gone.abort());
    loaded ??= options.tools().then((tools) => createToolCalls(tools, onFailure));
    const served = (await loaded)({
      ...performOperation(context),
      caller,
      send: async (request) => {
        await turnOfTool(context);
        return sendForTool(openForTool, request, {
          key: apiKey,
          address: context.address,
          signal: gone.signal,
        });
      },
    });
    const { respondTo, serverOf } = await import('./protocol.ts');
    const message = { headers: headersIn(context), body: context.body };
    const { status, text } = await respondTo(serverOf(served, version), message);
    context.send(status, text, text === '' ? undefined : jsonMediaType);
  };
}

/**
 * A page sends its origin, also one whose name was made to lead here (DNS rebinding). No page has a private key that
 * it should use.
 */
function refusePages({ headers }: RequestContext): void {
  if (headers.origin === undefined) return;
  throw new VaultError('forbidden', { public: 'Pages of browsers have no access to /mcp.' });
}

function needsKey(): VaultError {
  return new VaultError('forbidden', { public: 'This request needs a private API key.' });
}

function oneMessage(): VaultError {
  return new VaultError('malformed_request', { public: 'Send one message in a request.' });
}

/** Those of the protocol; the key stays here. */
function headersIn({ headers }: RequestContext): Record<string, string> {
  const own = Object.entries(headers).filter(([name]) => name.startsWith('mcp-'));
  return {
    'content-type': 'application/json',
    // Required by the protocol, and JSON is what every client gets.
    accept: 'application/json, text/event-stream',
    ...Object.fromEntries(own.map(([name, value]) => [name, String(value)])),
  };
}
