/** Calls between threads: requests with a response, and notifications without one, as data. */
import { MessagePort } from 'node:worker_threads';
import { type ErrorCode, VaultError, type VaultErrorDetails } from './errors.ts';

/** The calls that one side offers: for each name, its input and its output. */
type Calls<C> = { readonly [N in keyof C]: (input: never) => unknown };
type Input<C extends Calls<C>, N extends keyof C> = Parameters<C[N]>[0];
type Output<C extends Calls<C>, N extends keyof C> = Awaited<ReturnType<C[N]>>;

export interface ThreadRpc<C extends Calls<C>> {
  /** Rejects with the error of the other side, or with the error that ended the thread. */
  call<N extends keyof C & string>(name: N, input: Input<C, N>): Promise<Output<C, N>>;
  /** Arrives before all later messages. The sender does not learn the outcome. */
  notify<N extends keyof C & string>(name: N, input: Input<C, N>): void;
  /** Rejects all pending and future calls. */
  end(error: Error): void;
}

/** A worker, or the port of a worker to its parent. */
interface End {
  postMessage(message: unknown, transfer: MessagePort[]): void;
  on(event: 'message', listener: (message: RpcMessage) => void): unknown;
}

interface RpcRequest {
  readonly ask: string;
  readonly input: unknown;
  /** Absent if no response is expected. */
  readonly id?: number;
}

type RpcMessage =
  | RpcRequest
  | { readonly id: number; readonly output: unknown }
  | { readonly id: number; readonly failure: Failure };

interface Pending {
  resolve(output: unknown): void;
  reject(error: Error): void;
}

/** @param own the calls that this side offers. */
export function createThreadRpc<Theirs extends Calls<Theirs>, Own extends Calls<Own>>(
  end: End,
  own: Own,
): ThreadRpc<Theirs> {
  const pending = new Map<number, Pending>();
  let latest = 0;
  let ended: Error | undefined;

  async function run({ ask, input, id }: RpcRequest): Promise<void> {
    try {
      const output = await own[ask as keyof Own](input as never);
      // Within the try: an output that cannot be cloned is a failure of its call, and must not end the thread.
      if (id !== undefined && !ended) end.postMessage({ id, output }, portsOf(output));
    } catch (error) {
      if (id !== undefined && !ended) end.postMessage({ id, failure: failureOf(error) }, []);
    }
  }

  end.on('message', (message) => {
    if ('ask' in message) {
      void run(message);
      return;
    }
    const call = pending.get(message.id);
    pending.delete(message.id);
    if ('failure' in message) call?.reject(errorOf(message.failure));
    else call?.resolve(message.output);
  });

  return {
    call: (ask, input) =>
      new Promise<never>((resolve, reject) => {
        if (ended) throw ended;
        const id = ++latest;
        end.postMessage({ ask, input, id } satisfies RpcMessage, portsOf(input));
        pending.set(id, { resolve: resolve as (output: unknown) => void, reject });
      }),
    notify: (ask, input) => {
      if (!ended) end.postMessage({ ask, input } satisfies RpcMessage, portsOf(input));
    },
    end: (error) => {
      ended ??= error;
      for (const { reject } of pending.values()) reject(ended);
      pending.clear();
    },
  };
}

/** A port is transferred to the other side. */
function portsOf(value: unknown): MessagePort[] {
  return value instanceof MessagePort ? [value] : [];
}

/** An error as data. Structured clones of errors lose their class and our own properties. */
type Failure =
  | { readonly code: ErrorCode; readonly details: VaultErrorDetails }
  | { readonly name: string; readonly message: string; readonly stack: string | undefined };

function failureOf(error: unknown): Failure {
  if (error instanceof VaultError) {
    const { code, public: shown, message, errors, headers, altered } = error;
    const more = { ...(errors && { errors }), ...(headers && { headers }) };
    return {
      code,
      details: { public: shown, internal: message, ...more, ...(altered && { altered }) },
    };
  }
  const { name, message, stack } =
    error instanceof Error ? error : new Error('a non-Error value was thrown');
  return { name, message, stack };
}

function errorOf(failure: Failure): Error {
  if ('code' in failure) return new VaultError(failure.code, failure.details);
  const { name, message, stack } = failure;
  return Object.assign(new Error(message), { name, stack });
}
