/** The Model Context Protocol, by its SDK: the one file that imports it for requests, and is loaded with the first. */
import {
  type CallToolResult,
  createMcpHandler,
  type McpServerFactory,
  Server,
  type Tool,
} from '@modelcontextprotocol/server';

/** What a server of tools has to say. Neither throws: a failure is a result. */
export interface ServedTools {
  list(): Promise<Tool[]>;
  call(name: string, given: unknown): Promise<CallToolResult>;
}

const instructions =
  'Tools of a vault. You never see values: tokens are masked, and a placeholder (sr_…) stands for a value in a ' +
  'request that you send with http_request. list_destinations says where a placeholder may stand.';

/** A server for each connection or request, whichever revision of the protocol its client speaks. */
export function serverOf(served: ServedTools, version: string): McpServerFactory {
  return () => {
    const server = new Server(
      { name: 'strongroom', version },
      { capabilities: { tools: {} }, instructions },
    );
    server.setRequestHandler('tools/list', async () => ({ tools: await served.list() }));
    server.setRequestHandler('tools/call', ({ params }) =>
      served.call(params.name, params.arguments ?? {}),
    );
    return server;
  };
}

export interface PostedMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export interface PostedResponse {
  readonly status: number;
  /** A message as JSON, or nothing. */
  readonly text: string;
}

/** The response to one message. Nothing is kept for the next one, and no stream stays open. */
export async function respondTo(
  factory: McpServerFactory,
  { headers, body }: PostedMessage,
): Promise<PostedResponse> {
  const handler = createMcpHandler(factory, { maxSubscriptions: 0 });
  try {
    // Its address is not looked at.
    const request = new Request('http://vault.invalid/mcp', { method: 'POST', headers });
    const response = await handler.fetch(request, { parsedBody: body });
    return { status: response.status, text: messageIn(await response.text()) };
  } finally {
    await handler.close();
  }
}

/** Earlier revisions have it in a stream of one event. */
function messageIn(text: string): string {
  return /^data: (.*)$/m.exec(text)?.[1] ?? text;
}
