/** Newline-delimited JSON as it arrives. */

/** The lines of a body, each as soon as it is whole. Reading no further stops the sender. */
export async function* linesOf(
  source: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of source) {
    rest += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield line;
  }
  rest += decoder.decode();
  if (rest.trim() !== '') yield rest;
}

/** The value of a line; `undefined` where it is no JSON. The parser's message would quote it. */
export function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const timerMsMax = 2 ** 31 - 1;

/** A timer; `undefined` for a time that none can have, such as `Infinity`, after which nothing happens. */
export function after(
  milliseconds: number,
  run: () => void,
): ReturnType<typeof setTimeout> | undefined {
  return milliseconds <= timerMsMax ? setTimeout(run, milliseconds) : undefined;
}

interface Patience {
  /** For each chunk. */
  readonly timeout: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A body in its chunks. Not every runtime iterates a stream by itself.
 *
 * @throws the reason of the signal, and an error where a chunk takes too long.
 */
export async function* chunksOf(
  stream: ReadableStream<Uint8Array> | null,
  { timeout, signal }: Patience,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (stream === null) return;
  const reader = stream.getReader();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let interrupt = (_reason: unknown): void => undefined;
  const abort = () => interrupt(signal?.reason);
  signal?.addEventListener('abort', abort);
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { done, value } = await new Promise<Awaited<ReturnType<typeof reader.read>>>(
        (resolve, reject) => {
          interrupt = reject;
          timer = after(timeout, () => reject(new Error('late')));
          reader.read().then(resolve, reject);
        },
      );
      clearTimeout(timer);
      if (done) return;
      yield value;
    }
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
    // Also when the caller has had enough. It must not wait for a sender that does not end.
    reader.cancel().catch(() => undefined);
  }
}
