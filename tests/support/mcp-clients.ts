/** Agents in tests: the official client of the Model Context Protocol, over HTTP, and over a command's pipes. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { Lender } from './temporary.ts';

/** What a tool gives, as its client reads it. */
export interface CalledTool {
  readonly isError: boolean;
  /** All of the result, as it came. */
  readonly whole: string;
  readonly result: Readonly<Record<string, unknown>>;
}

export interface TestAgent {
  readonly names: () => Promise<string[]>;
  readonly call: (name: string, given?: Readonly<Record<string, unknown>>) => Promise<CalledTool>;
}

/** `2026-07-28` has neither a handshake nor sessions; clients of before have both. */
export const revisions = ['auto', 'legacy'] as const;
type Revision = (typeof revisions)[number];

export async function agentOverHttp(
  t: Lender,
  { url, key }: { readonly url: string; readonly key: string },
  revision: Revision = 'auto',
): Promise<TestAgent> {
  const requestInit = { headers: { 'SVC-API-KEY': key } };
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit });
  return connected(t, transport, revision);
}

export async function agentOverPipes(
  t: Lender,
  command: {
    readonly command: string;
    readonly args: string[];
    readonly env: Record<string, string>;
  },
  revision: Revision = 'auto',
): Promise<TestAgent> {
  return connected(t, new StdioClientTransport(command), revision);
}

async function connected(
  t: Lender,
  transport: StreamableHTTPClientTransport | StdioClientTransport,
  mode: Revision,
): Promise<TestAgent> {
  const client = new Client({ name: 'a test', version: '1.0.0' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  t.after(() => client.close());
  return {
    names: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, given = {}) => {
      const called = await client.callTool({ name, arguments: given });
      const result = called.structuredContent as CalledTool['result'];
      return { isError: called.isError === true, whole: JSON.stringify(called), result };
    },
  };
}
