/** The body of a call: read whole where it is small or holds expressions, else sent on as it arrives. */
import { Readable } from 'node:stream';
import { invalid, VaultError } from '../../base/errors.ts';
import {
  bodyWithExpressionsBytesMax,
  formOf,
  hasExpressions,
} from '../../expressions/request-parts/forms.ts';
import type { CallBody } from '../../proxies/calls/proxy-call.ts';
import { bytesOf, connectionEnded } from '../protocol/body.ts';
import type { RequestContext } from '../protocol/request-context.ts';
import type { Streaming } from '../protocol/streaming.ts';

/** Bodies up to this size are read whole: the call can then be sent again if a reused connection has been closed. */
const heldBytesMax = 65_536;

const whole = { failure: () => undefined };

/** What makes a body be read whole. */
export interface BodyMarks {
  readonly isIn: (text: string) => boolean;
  /** What may be parted between two chunks, less one. */
  readonly overlapBytes: number;
}

/** The longest beginning of an expression is `%7B%7B`. */
const expressionMarks: BodyMarks = { isIn: hasExpressions, overlapBytes: 5 };

export interface CallBodyOptions {
  readonly streaming: Pick<Streaming, 'received'>;
  /** Expressions in it are the destination's. */
  readonly literal: boolean;
  /** What is looked for in it; expressions unless given. */
  readonly marks?: BodyMarks;
  /** Refused where it is large: nobody knows yet whether it will be sent. */
  readonly isWhole?: boolean;
  /** Called with the bytes of a large body before they are held. */
  readonly hold: (bytes: number) => void;
}

/**
 * @throws VaultError `validation_failed` for a body with a transfer coding other than chunks, `overloaded` from
 * `hold`, `body_too_large` for a body with expressions. If the first expression comes after
 * {@link bodyWithExpressionsBytesMax} bytes, the stream fails with `body_too_large`.
 */
export async function readCallBody(
  context: RequestContext,
  { streaming, literal, hold, marks = expressionMarks, isWhole = false }: CallBodyOptions,
): Promise<CallBody> {
  const { headers } = context;
  requireChunkedAlone(headers);
  if (!hasBody(headers)) return { content: undefined, form: undefined, ...whole };
  const form = literal || isEncoded(headers) ? undefined : formOf(headers['content-type']);
  const length = Number(headers['content-length']);
  if (length <= heldBytesMax || isWhole) {
    return { content: await bytesOf(context, heldBytesMax), form, ...whole };
  }
  const source = streaming.received(context);
  if (form === undefined) return { ...streamOf(source), form };
  try {
    const heldMax =
      length > bodyWithExpressionsBytesMax ? heldBytesMax : bodyWithExpressionsBytesMax;
    return await readText(source, { heldMax, form, hold, marks });
  } catch (error) {
    await source.return(undefined);
    context.setHeader('connection', 'close');
    throw error instanceof VaultError ? error : connectionEnded();
  }
}

/** A coding below the chunks would be lost on the way: it is the connection's, and bodies are sent on as they are. */
function requireChunkedAlone({ 'transfer-encoding': codings }: RequestContext['headers']): void {
  if (codings === undefined || codings.trim().toLowerCase() === 'chunked') return;
  const message = 'must be chunked alone; a compressed body has a Content-Encoding';
  throw invalid('transfer-encoding', message);
}

function hasBody(headers: RequestContext['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
}

/** A compressed body cannot hold expressions. */
function isEncoded({
  'content-encoding': encoding = 'identity',
}: RequestContext['headers']): boolean {
  return encoding.trim().toLowerCase() !== 'identity';
}

type Source = AsyncGenerator<Buffer>;

interface BodyReading extends Pick<CallBodyOptions, 'hold'> {
  readonly marks: BodyMarks;
  readonly heldMax: number;
  readonly form: CallBody['form'];
}

/** Holds the beginning, so that nothing is sent of a body with expressions that turns out to be too large. */
async function readText(
  source: Source,
  { heldMax, form, hold, marks }: BodyReading,
): Promise<CallBody> {
  const scan = createScan(marks);
  const held: Buffer[] = [];
  let bytes = 0;
  let found = false;
  for (let next = await source.next(); next.done !== true; next = await source.next()) {
    hold(next.value.length);
    held.push(next.value);
    bytes += next.value.length;
    found ||= scan(next.value);
    if (bytes <= heldMax) continue;
    if (found) throw tooLarge();
    return { ...streamOf(source, { held, scan }), form: undefined };
  }
  return { content: Buffer.concat(held, bytes), form, ...whole };
}

interface BegunBody {
  readonly held: readonly Buffer[];
  readonly scan: (chunk: Buffer) => boolean;
}

/** Ends with its source, also when it is destroyed. */
function streamOf(source: Source, begun?: BegunBody): Pick<CallBody, 'content' | 'failure'> {
  let failure: VaultError | undefined;
  async function* parts(): AsyncGenerator<Buffer> {
    try {
      if (begun) yield* begun.held;
      for await (const chunk of source) {
        if (begun?.scan(chunk)) throw tooLarge();
        yield chunk;
      }
    } catch (error) {
      if (error instanceof VaultError) failure = error;
      throw error;
    }
  }
  const content = Readable.from(parts(), { objectMode: false });
  // The sender of the stream learns of its failure; before that nothing listens.
  content.on('error', () => undefined);
  return { content, failure: () => failure };
}

/** True once a chunk, with what came before it, holds a mark. */
function createScan({ isIn, overlapBytes }: BodyMarks): (chunk: Buffer) => boolean {
  let tail = '';
  return (chunk) => {
    const text = tail + chunk.toString('latin1');
    tail = text.slice(-overlapBytes);
    return isIn(text);
  };
}

function tooLarge(): VaultError {
  return new VaultError('body_too_large', {
    public: `A body with expressions must have at most ${bodyWithExpressionsBytesMax} bytes.`,
  });
}
