/** Requests that a tool sends for an agent: the way of every program's requests, without a network before it. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { invalid, VaultError } from '../../base/errors.ts';
import { nodeHttp } from '../../base/node-http.ts';

export interface ToolRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

export interface SentResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string;
  /** Of a body that is not UTF-8. */
  readonly encoding?: 'base64';
  /** Set if more came than is shown. */
  readonly truncated?: true;
}

/**
 * The connection of a program to a host, opened for the holder of a key who is at an address.
 * @throws VaultError `malformed_request` for a host that has no name.
 */
export type OpenForTool = (opened: {
  readonly key: string;
  readonly address: string;
  /** Its name and its port. */
  readonly authority: string;
  readonly isPlain: boolean;
}) => Duplex;

export interface ToolSender {
  readonly key: string;
  readonly address: string;
  readonly signal: AbortSignal;
}

/** Of a response; the rest is not read. */
const toolResponseBytesMax = 262_144;

/** What frames a message, and what a program says to its proxy: the vault writes them. */
const ownHeaders =
  /^(?:host|connection|content-length|transfer-encoding|upgrade|te|expect|proxy-.*)$/i;

/** @throws VaultError `validation_failed` for what cannot be sent, and whatever refuses the request on its way. */
export async function sendForTool(
  open: OpenForTool,
  { method, url, headers, body }: ToolRequest,
  { key, address, signal }: ToolSender,
): Promise<SentResponse> {
  const { authority, isPlain, path } = readUrl(url);
  requireHeaders(headers);
  const connection = open({ key, address, authority, isPlain });
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = nodeHttp.request({
        method,
        path,
        headers: {
          ...headers,
          host: authority,
          ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
        },
        createConnection: () => connection,
        signal,
      });
      request.once('response', resolve).once('error', reject).end(body);
    });
    return await read(response);
  } catch (error) {
    if (error instanceof VaultError) throw error;
    throw new VaultError('bad_gateway', {
      public: 'The connection ended before the response did.',
      cause: error,
    });
  } finally {
    connection.destroy();
  }
}

function readUrl(text: string) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw invalid('url', 'must be an https or http URL');
  if (url.username !== '' || url.password !== '')
    throw invalid('url', 'must have no user; use the header authorization');
  const isPlain = url.protocol === 'http:';
  const port = url.port || (isPlain ? '80' : '443');
  return {
    authority: `${url.hostname}:${port}`,
    isPlain,
    path: `${url.pathname}${url.search}`,
  };
}

function requireHeaders(headers: ToolRequest['headers']): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      nodeHttp.validateHeaderName(name);
      nodeHttp.validateHeaderValue(name, value);
    } catch {
      throw invalid('headers', 'must be names and values that HTTP permits');
    }
    if (ownHeaders.test(name))
      throw invalid('headers', 'must not have those that the vault writes');
  }
}

async function read(response: IncomingMessage): Promise<SentResponse> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > toolResponseBytesMax) break;
  }
  const bytes = Buffer.concat(chunks);
  const shown = bytes.subarray(0, toolResponseBytesMax);
  const isCut = bytes.length > shown.length;
  const text = textOf(shown, isCut);
  return {
    status: response.statusCode ?? 0,
    headers: Object.fromEntries(
      Object.entries(response.headers).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value]],
      ),
    ),
    ...(text === undefined
      ? { body: shown.toString('base64'), encoding: 'base64' }
      : { body: text }),
    ...(isCut && { truncated: true }),
  };
}

/** A cut may be within a character. */
function textOf(bytes: Buffer, isCut: boolean): string | undefined {
  for (let dropped = 0; dropped <= (isCut ? 3 : 0); dropped += 1) {
    const part = bytes.subarray(0, bytes.length - dropped);
    if (isUtf8(part)) return part.toString('utf8');
  }
  return undefined;
}
