/** One request and its response, from the first byte to the last, as every step of handling sees it. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { pipeline, type Readable, type Writable } from 'node:stream';
import type { Caller, Origin } from '../../rules/caller.ts';
import { discard, discarded, isUnread, lingering, mayBeShort } from './connection.ts';
import type { RequestShare } from './request-share.ts';

export const jsonMediaType = 'application/json; charset=utf-8';

/** Headers and trailers are names and values in turn. With 101, the body is what the connection is used for then. */
export interface PassedResponse {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: Readable;
  readonly trailers: () => readonly string[];
}

export interface ExchangeOptions {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Network address of the client. */
  readonly address: string;
  /** The trusted proxies that passed it on, the nearest to the client first. */
  readonly forwarded: string | undefined;
  /** The key with which the request was sent. */
  readonly apiKey: string | undefined;
  /** Aborted when the server begins to stop. */
  readonly stopping: AbortSignal;
  /** Called when the response leaves before the body has arrived. */
  readonly onEarlyResponse: (request: IncomingMessage) => void;
}

export class RequestContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly address: string;
  readonly forwarded: string | undefined;
  readonly apiKey: string | undefined;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** The pattern, such as `/tokens/:id`; `undefined` where no route matched. */
  route: string | undefined;
  params: unknown;
  query: unknown;
  body: unknown;
  origin: Origin | undefined;
  /** Failures of the vault are then wrapped, so that a caller does not take them for the destination's. */
  isProxyCall = false;
  /** Of a request that the server cut off before its response began. */
  cutOffStatus: number | undefined;
  caller: Caller | undefined;
  /** Why the request is refused as soon as it is handled. */
  flaw: unknown;
  /** The request's share of the thread; set before any work is done for it. */
  share: RequestShare | undefined;
  readonly #stopping: AbortSignal;
  readonly #onEarlyResponse: ExchangeOptions['onEarlyResponse'];
  /** Names, in lower case, and values in turn, as they are written. */
  readonly #headers: string[] = [];

  constructor(options: ExchangeOptions) {
    const { request, response, address, forwarded, apiKey, stopping, onEarlyResponse } = options;
    this.request = request;
    this.response = response;
    this.address = address;
    this.forwarded = forwarded;
    this.apiKey = apiKey;
    this.method = request.method ?? '';
    this.headers = request.headers;
    this.#stopping = stopping;
    this.#onEarlyResponse = onEarlyResponse;
  }

  /** Of the response; a later value replaces an earlier one. */
  setHeader(name: string, value: string): void {
    const place = this.#placeOf(name);
    if (place < 0) this.#headers.push(name, value);
    else this.#headers[place + 1] = value;
  }

  setHeaders(headers: Readonly<Record<string, string>>): void {
    for (const name in headers) this.setHeader(name, headers[name] as string);
  }

  /** Names and values in turn. */
  get headersToSend(): readonly string[] {
    return this.#headers;
  }

  headerToSend(name: string): string | undefined {
    const place = this.#placeOf(name);
    return place < 0 ? undefined : this.#headers[place + 1];
  }

  /** Sends the whole response; with a body its media type. */
  send(status: number, text: string | Uint8Array = '', mediaType?: string): void {
    if (mediaType !== undefined) this.setHeader('content-type', mediaType);
    if (status !== 204 && status !== 304)
      this.setHeader('content-length', String(Buffer.byteLength(text)));
    this.share?.holdResponse(text.length);
    if (isUnread(this.request)) {
      void this.#sendEarly(status, text);
      return;
    }
    this.#writeHead(status);
    // One write for head and body.
    this.response.end(this.method === 'HEAD' ? undefined : text);
  }

  /** Before the body has arrived. */
  async #sendEarly(status: number, text: string | Uint8Array): Promise<void> {
    const { request, response } = this;
    if (mayBeShort(request)) await discard(request, discarded);
    const isLast = isUnread(request);
    if (isLast) {
      this.setHeader('connection', 'close');
      this.#onEarlyResponse(request);
    }
    this.#writeHead(status);
    if (isLast) {
      response.flushHeaders();
      if (this.method !== 'HEAD' && text.length > 0) response.write(text);
      await discard(request, lingering);
      response.end();
    } else {
      response.end(this.method === 'HEAD' ? undefined : text);
    }
  }

  /** Sends the parts as they come. What fails midway cuts the connection. */
  stream(status: number, mediaType: string, parts: Readable): void {
    if (this.response.destroyed) {
      parts.destroy();
      return;
    }
    this.setHeader('content-type', mediaType);
    this.#writeHead(status);
    pipeline(parts, this.response, () => undefined);
  }

  /** Sends on what another host responded with: its headers, in place of ours, and its body as it comes. */
  pass({ status, headers, body, trailers }: PassedResponse): void {
    const { response } = this;
    if (response.destroyed) {
      body.destroy();
      return;
    }
    const isUpgraded = status === 101;
    const sent = isUpgraded ? [...upgradeHeaders, ...headers] : headers;
    const own = this.#headers.splice(0, this.#headers.length, ...sent);
    try {
      this.#writeHead(status);
    } catch (error) {
      body.destroy();
      // Else the failure would leave under the other host's headers, its length among them.
      this.#headers.splice(0, this.#headers.length, ...own);
      throw error;
    }
    if (isUpgraded) {
      const { socket } = this.request;
      response.flushHeaders();
      // The client has nothing to wait for, whether or not it ends the connection from its side.
      body.once('end', () => socket.destroySoon());
      pour(body, { to: socket, of: response });
      return;
    }
    // Before the end of the pipeline, which ends the response.
    body.once('end', () => {
      const pairs = trailers();
      if (pairs.length > 0) response.addTrailers(pairsOf(pairs));
    });
    pour(body, { to: response, of: response });
    // With the first bytes of the body, unless the headers are all that comes for a while.
    setImmediate(() => response.flushHeaders());
  }

  #writeHead(status: number): void {
    // Otherwise the connection would be kept alive, and the server with it.
    if (this.#stopping.aborted && status !== 101) this.setHeader('connection', 'close');
    this.response.writeHead(status, this.#headers);
  }

  #placeOf(name: string): number {
    for (let place = 0; place < this.#headers.length; place += 2) {
      if (this.#headers[place] === name) return place;
    }
    return -1;
  }
}

/** Like `pipeline`, whose other services cost as much as the whole rest of a small response. */
function pour(
  body: Readable,
  { to, of }: { readonly to: Writable; readonly of: ServerResponse },
): void {
  const end = () => {
    if (!body.readableEnded) to.destroy();
  };
  body.once('error', end).once('close', end);
  of.once('close', () => body.destroy());
  // It may have failed already.
  if (body.destroyed) end();
  else body.pipe(to);
}

const upgradeHeaders = ['connection', 'Upgrade', 'upgrade', 'websocket'] as const;

function pairsOf(flat: readonly string[]): [string, string][] {
  return flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? '']] : []));
}

/** Responds, or fails before anything of the response has left. */
export type Handle = (context: RequestContext) => Promise<void>;

export function originOf({ origin }: RequestContext): Origin {
  if (!origin) throw new Error('every response begins with the origin');
  return origin;
}
