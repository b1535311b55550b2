/** Streams: responses that leave in parts, those of lines while their request may still be arriving. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';
import { type Duplex, Readable } from 'node:stream';
import { VaultError } from '../../base/errors.ts';
import type { Caller } from '../../rules/caller.ts';
import type { WrittenList } from '../../rules/reply.ts';
import { connectionEnded } from './body.ts';
import { textOfList } from './list-text.ts';
import { pacedParts } from './paced.ts';
import { type Problem, problemOf } from './problem.ts';
import type { ClientProgress } from './progress.ts';
import { jsonMediaType, type RequestContext } from './request-context.ts';
import type { RequestShare } from './request-share.ts';
import type { CountParts, StreamPart, StreamRoute } from './route.ts';
import type { Serialize } from './serialization.ts';

export interface StreamingOptions {
  /** Aborted when the server begins to stop. */
  readonly stopping: AbortSignal;
  /** Cuts off clients that send a body too slowly. */
  readonly progress: ClientProgress;
  /** How long a client may go on sending after its response has ended. */
  readonly patienceMs: number;
  /** Reports a failure to the operator, and gives the part of it that the caller may see. */
  readonly logFailure: (error: unknown, context: RequestContext) => VaultError;
}

interface StreamExchange {
  readonly context: RequestContext;
  /** Of a line, or of a whole page of the list. */
  readonly serialize: Serialize;
  readonly caller: () => Promise<Caller>;
}

export interface StreamResponse extends StreamExchange {
  readonly route: StreamRoute;
  readonly key: string | undefined;
  readonly count: CountParts;
}

export interface ListResponse extends StreamExchange {
  readonly list: WrittenList;
}

export interface Streaming {
  /** True while a stream is under way on the connection. */
  isStreaming(socket: Duplex): boolean;
  /** Resolves when nothing is being done any more for streams that have begun. */
  ended(): Promise<void>;
  /** Fails like any other request while nothing of the response has left. */
  respond(response: StreamResponse): Promise<void>;
  /**
   * The response of another host is going to be passed on, and perhaps the request to it. `end` is called
   * when the response has ended or its client has gone.
   */
  passOn(context: RequestContext, end: () => void): void;
  /**
   * The body as it arrives, from a client that pays for its bytes, and is cut off when it sends too slowly.
   */
  received(context: RequestContext): AsyncGenerator<Buffer>;
  /** The same for a list that is written item by item. What fails later cuts the connection. */
  responseList(response: ListResponse): Promise<void>;
}

export function createStreaming(options: StreamingOptions): Streaming {
  const { stopping, progress, patienceMs, logFailure } = options;
  const sockets = new WeakSet<Duplex>();
  const underWay = new Set<Promise<unknown>>();

  function begin({ request, response }: RequestContext, end: () => unknown): void {
    const { socket } = request;
    // The close event, which ends the work, has already fired and does not fire again.
    if (response.destroyed) throw connectionEnded();
    sockets.add(socket);
    const ended = new Promise((resolve) => {
      response.once('close', () => {
        sockets.delete(socket);
        if (!request.complete && !socket.destroyed) drain(request, patienceMs);
        // When the headers were sent, it was not known that this connection would close.
        else if (stopping.aborted) socket.destroySoon();
        // Work in progress ends before this resolves, and none begins after it.
        resolve(end());
      });
    }).catch(() => undefined);
    underWay.add(ended);
    void ended.then(() => underWay.delete(ended));
  }

  function linesOf({
    route,
    context,
    caller,
    key,
    count,
  }: StreamResponse): AsyncIterator<StreamPart> {
    const asked = {
      caller: async () => {
        // A stream takes a turn for each of its parts, which yield to other requests as a request does.
        await context.share?.turnOfPart();
        if (stopping.aborted) throw serverStops();
        return caller();
      },
      rowsOfPart: (rowsMax: number) => context.share?.rowsOfPart(rowsMax) ?? rowsMax,
      key,
      count,
      query: context.query as never,
      body: progress.sentBy(context.request.socket, bodyOf(context)),
    };
    return ofRequest(route.stream(asked)[Symbol.asyncIterator]());
  }

  return {
    isStreaming: (socket) => sockets.has(socket),
    ended: async () => {
      await Promise.all(underWay);
    },
    passOn: (context, end) => {
      if (context.response.destroyed) end();
      begin(context, end);
    },
    received: ({ request, share }) => {
      const sent = progress.sentBy(request.socket, request.iterator({ destroyOnReturn: false }));
      return share === undefined ? sent : pacedParts(sent, share);
    },
    respond: async (response) => {
      const { route, context, serialize } = response;
      const lines = linesOf(response);
      begin(context, () => lines.return?.(undefined));
      const first = await lines.next().catch((error) => {
        throw failureOf(error, context);
      });
      const report = (error: unknown) => problemOf(logFailure(failureOf(error, context), context));
      const text = readableOf(
        textOf({ begun: [first], lines, serialize, share: context.share, report }),
      );
      context.stream(route.reply.status, route.reply.mediaType, text);
    },
    responseList: async (response) => {
      const { context } = response;
      // Every token would be decrypted, and nothing shown.
      if (context.method === 'HEAD') {
        context.stream(200, jsonMediaType, Readable.from([]));
        return;
      }
      const parts = ofRequest(textOfList(response));
      begin(context, () => parts.return?.(undefined));
      const first = await parts.next().catch((error) => {
        throw failureOf(error, context);
      });
      const report = (error: unknown) => logFailure(failureOf(error, context), context);
      context.stream(200, jsonMediaType, readableOf(listFrom({ begun: [first], parts, report })));
    },
  };
}

/** What asks for the next part is a connection that has room again: whose request it is says the first call alone. */
function ofRequest<T>(parts: AsyncIterator<T>): AsyncIterator<T> {
  const inContext = AsyncLocalStorage.snapshot();
  return {
    next: () => inContext(() => parts.next()),
    return: () => inContext(() => parts.return?.(undefined) ?? ended),
  };
}

const ended = Promise.resolve({ done: true, value: undefined } as const);

/** With a higher mark the next part would be made before the previous one was read. */
function readableOf(parts: AsyncIterable<Buffer>): Readable {
  return Readable.from(parts, { objectMode: false, highWaterMark: 0 });
}

interface ListBegun {
  /** The first part. It is removed from the array when it is sent, so that a slow client does not keep it in memory. */
  readonly begun: IteratorResult<Buffer>[];
  readonly parts: AsyncIterator<Buffer>;
  readonly report: (error: unknown) => VaultError;
}

/** A list that ended early would look like a short one, so what ends it ends its connection as well. */
async function* listFrom({ begun, parts, report }: ListBegun): AsyncGenerator<Buffer> {
  const next = () => parts.next();
  try {
    for (let part = begun.pop() ?? (await next()); part.done !== true; part = await next()) {
      yield part.value;
    }
  } catch (error) {
    throw report(error);
  }
}

interface BegunStream {
  /** The first lines, as for a list. */
  readonly begun: IteratorResult<StreamPart>[];
  readonly lines: AsyncIterator<StreamPart>;
  readonly serialize: Serialize;
  readonly share: RequestShare | undefined;
  /** Called with what ends the response. */
  readonly report: (error: unknown) => Problem;
}

/** The status has already been sent when something fails, so the last line reports the failure. */
async function* textOf({
  begun,
  lines,
  serialize,
  share,
  report,
}: BegunStream): AsyncGenerator<Buffer> {
  const next = () => lines.next();
  const bytesOf = (some: StreamPart) =>
    some instanceof Uint8Array
      ? Buffer.from(some.buffer, some.byteOffset, some.length)
      : Buffer.from(some.map((line) => `${serialize(line)}\n`).join(''));
  try {
    for (let some = begun.pop() ?? (await next()); some.done !== true; some = await next()) {
      // One commit may have completed parts of many streams, which would all continue at once.
      const turn = share?.nextStep();
      if (turn) await turn;
      if (some.value.length > 0) yield bytesOf(some.value);
    }
  } catch (error) {
    yield Buffer.from(`${JSON.stringify({ problem: report(error) })}\n`);
  }
}

function failureOf(error: unknown, { request }: RequestContext): unknown {
  return request.socket.destroyed ? connectionEnded() : error;
}

/** A handler that stops reading midway still has a connection for its response. */
function bodyOf({ request, method }: RequestContext): AsyncIterable<Buffer> {
  return method === 'GET' ? Readable.from([]) : request.iterator({ destroyOnReturn: false });
}

function serverStops(): VaultError {
  return new VaultError('unavailable', {
    public: 'The server is stopping. Request again what is missing from the response.',
  });
}

/** A client that is still sending reads the last line only if its connection stays open. */
function drain(raw: IncomingMessage, patienceMs: number): void {
  // Unlike `resume` it has its effect also where a reader that still waits for a chunk leaves later.
  raw.on('data', () => undefined);
  const deadline = setTimeout(() => raw.socket.destroy(), patienceMs);
  raw.once('close', () => clearTimeout(deadline));
}
