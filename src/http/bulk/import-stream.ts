/**
 * The stream of an import. This thread and its siblings work on parts of its lines at the same time. Commits and
 * responses follow the order of the lines.
 */
import { VaultError } from '../../base/errors.ts';
import type { Caller } from '../../rules/caller.ts';
import type { TokenWriting } from '../../tokens/create.ts';
import { beginImport, type ImportRun, importLines } from '../../tokens/import.ts';
import { bodyBytesMax, connectionEnded } from '../protocol/body.ts';
import { type BodyLine, bytesOf, joined, linesOf } from '../protocol/lines.ts';
import type { Allowance, StreamPart, StreamRequest } from '../protocol/route.ts';
import { HeldBytes } from './held-bytes.ts';
import {
  bytesOfResponses,
  type LineFormat,
  type NumberedLine,
  numbered,
  readLine,
  responseOf,
} from './part.ts';
import { type Sibling, SiblingEnded, type Siblings } from './siblings.ts';
import { createWorkers, type Workers } from './workers.ts';

export interface ImportTools extends TokenWriting, LineFormat {
  /** Absent if the vault has one request thread. */
  readonly siblings?: Siblings | undefined;
}

type ImportRequest = StreamRequest<object>;

/** Smaller parts are not worth sending to another thread. */
const sharedBytesMin = 4_096;

/** A part that is being worked on; an object, because a generator would wait for a promise. */
interface PartWork {
  readonly response: Promise<StreamPart>;
}

export async function* importStream(
  tools: ImportTools,
  request: ImportRequest,
): AsyncGenerator<StreamPart> {
  const held = new HeldBytes();
  const workers = createWorkers(tools.siblings);
  const work = workOn(tools, request, { held, workers });
  const begin = () => {
    const next = work.next();
    // A failure is reported in the order of the lines.
    responseOfNext(next).catch(nothing);
    return next;
  };
  const ahead = Array.from({ length: workers.partsMax() - 1 }, begin);
  try {
    for (let next = ahead.shift(); next; next = ahead.shift()) {
      const some = await next;
      if (some.done === true) return;
      ahead.push(begin());
      const response = await some.value.response;
      yield response;
      held.unread(-bytesHeldBy(response));
    }
  } finally {
    held.close();
    await Promise.all(ahead.map((next) => responseOfNext(next).catch(nothing)));
    await work.return(undefined);
  }
}

async function responseOfNext(next: Promise<IteratorResult<PartWork>>): Promise<void> {
  await (await next).value?.response;
}

function nothing(): void {}

/** With one request thread at most two parts are held, and they are not counted. */
function bytesHeldBy(response: StreamPart): number {
  return response instanceof Uint8Array ? response.length : 0;
}

interface Sharing {
  readonly held: HeldBytes;
  readonly workers: Workers;
}

async function* workOn(
  tools: ImportTools,
  request: ImportRequest,
  { held, workers }: Sharing,
): AsyncGenerator<PartWork> {
  const run = beginImport(tools);
  let before: Promise<unknown> = Promise.resolve();
  let following = 1;
  const received = linesOf(readUntilClosed(request.body, held), bodyBytesMax);
  for await (const lines of partsOf(received, request)) {
    const first = following;
    following += lines.length;
    const sent = numbered(lines, first);
    if (sent.length === 0) continue;
    await held.untilRoom();
    await workers.untilFree();
    if (held.isClosed) return;
    const caller = await request.caller();
    const counted = await request.count(sent.length);
    const partsBefore = before;
    const turn = async () => {
      await partsBefore;
      await held.untilRead();
      if (held.isClosed) throw connectionEnded();
      // Lines sent under a key are not imported once the key has expired.
      return request.caller();
    };
    const part = { run, caller, ...counted, key: request.key, lines, first, sent, turn };
    const response = holding(held, bytesOf(lines), importPart(tools, workers, part));
    before = Promise.all([before, response]);
    before.catch(nothing);
    yield { response };
  }
}

/** No part has more lines than its caller's share has time for. */
async function* partsOf(
  received: AsyncIterable<readonly BodyLine[]>,
  { rowsOfPart }: ImportRequest,
): AsyncGenerator<readonly BodyLine[]> {
  for await (const lines of received) {
    for (let at = 0; at < lines.length; ) {
      const end = at + rowsOfPart(lines.length - at);
      yield lines.slice(at, end);
      at = end;
    }
  }
}

/** A client may wait for the response before it sends more, so the end does not wait for its next chunk. */
async function* readUntilClosed(
  body: AsyncIterable<Buffer>,
  held: HeldBytes,
): AsyncGenerator<Buffer> {
  const chunks = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await held.unlessClosed(chunks.next());
      if (next === undefined || next.done === true) return;
      yield next.value;
    }
  } finally {
    chunks.return?.().catch(nothing);
  }
}

async function holding(
  held: HeldBytes,
  bytes: number,
  working: Promise<StreamPart>,
): Promise<StreamPart> {
  held.working(bytes);
  try {
    const response = await working;
    held.unread(bytesHeldBy(response));
    return response;
  } finally {
    held.working(-bytes);
  }
}

interface Part extends Allowance {
  readonly run: ImportRun;
  readonly caller: Caller;
  readonly key: string | undefined;
  readonly lines: readonly BodyLine[];
  /** The number of the first line. */
  readonly first: number;
  /** The lines that are not blank. */
  readonly sent: readonly NumberedLine[];
  /** Resolves when the part may be committed. Called again for each commit. */
  readonly turn: () => Promise<Caller>;
}

function importPart(tools: ImportTools, workers: Workers, part: Part): Promise<StreamPart> {
  const sibling = mayBeShared(part) ? workers.leastBusy() : undefined;
  const working = sibling ? importThere(sibling, tools, part) : importHere(tools, part);
  return workers.has(sibling, working);
}

/** Rare parts stay on this thread: lines that are too long to pass on, or that the rate limit refused. */
function mayBeShared({ lines, refusal }: Part): boolean {
  return refusal === undefined && !lines.includes(undefined) && bytesOf(lines) >= sharedBytesMin;
}

async function importHere(tools: ImportTools, part: Part): Promise<StreamPart> {
  const { run, caller, granted, refusal, sent, turn } = part;
  // Lines that are only over the limit cost neither a decision nor a commit.
  if (refusal && granted === 0) return responsesOf(part, refusal);
  const lines = sent.map((line, at) =>
    refusal && at >= granted ? refusal : readLine(tools, line, caller),
  );
  const results = await importLines(tools, run, { caller, lines, turn });
  const responses = results.map((result, at) => responseOf(sent[at]?.number, result));
  return tools.siblings ? bytesOfResponses(tools, responses) : responses;
}

/** If a thread ends before it begins to commit, this thread does the work. */
async function importThere(sibling: Sibling, tools: ImportTools, part: Part): Promise<StreamPart> {
  const { run, caller, key, lines, first, turn } = part;
  let mayBeDone = false;
  const ask = async () => {
    await turn();
    mayBeDone = true;
  };
  try {
    const shared = { run, key, origin: caller.origin, first, bytes: joined(lines) };
    const { bytes, idsAreTaken } = await sibling.importShared(shared, ask);
    run.idsAreTaken ||= idsAreTaken;
    return bytes;
  } catch (error) {
    if (!(error instanceof SiblingEnded)) throw error;
    return mayBeDone ? responsesOf(part, outcomeUnknown()) : importHere(tools, part);
  }
}

/** The same for every line. */
function responsesOf({ sent }: Part, failure: VaultError): readonly object[] {
  return sent.map(({ number }) => responseOf(number, { failure }));
}

function outcomeUnknown(): VaultError {
  return new VaultError('unavailable', {
    public:
      'The part of the server that worked on this line ended, and whether the line was done is not ' +
      'known. Send it again with its id, or check the result.',
  });
}
