/** Handles the parent's messages inside the engine: one call, and the replies to its requests. */
import type { GuestCall, GuestReply } from '../messages.ts';
import type { Host, HostResponse } from './host.ts';
import type { BufferPart, CryptoPart, ErrorsPart, LoggingPart, NamedExports } from './parts.ts';

interface HostPart {
  readonly host: Host;
  reply(given: GuestReply): void;
}

/** The first part: the interface to the host for all other parts. `ask` is the host's function. */
export function hostPart(call: (operation: string, text: string) => string): HostPart {
  const { stringify, parse } = JSON;
  interface PendingReply {
    resolve(value: unknown): void;
    reject(error: Error): void;
  }
  const pending = new Map<number, PendingReply>();
  const has = Object.hasOwn;

  function error(name: string, message: string, more: object = {}): Error {
    const made = Object.assign(new Error(message), more);
    return Object.defineProperty(made, 'name', { value: name, configurable: true, writable: true });
  }

  function ask(operation: string, text: string): string {
    const response = call(operation, text);
    const [sign] = response as unknown as [HostResponse];
    if (sign === '+') return response.slice(1);
    const { name, message } = parse(response.slice(1));
    throw error(name, message);
  }

  function askJson(operation: string, input: unknown): unknown {
    return parse(ask(operation, stringify(input)));
  }

  function request(operation: string, input: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = Number(ask('request', stringify({ operation, input })));
      pending.set(id, { resolve, reject });
    });
  }

  function reply(given: GuestReply): void {
    const waiting = pending.get(given.id);
    if (waiting === undefined) return;
    pending.delete(given.id);
    if (has(given, 'error') && given.error !== undefined) {
      const { name, message, more } = given.error;
      waiting.reject(error(name, message, more));
    } else waiting.resolve(given.value);
  }

  return { host: { ask, askJson, request, error }, reply };
}

interface GuestParts {
  readonly host: HostPart;
  readonly buffer: BufferPart;
  readonly logging: LoggingPart;
  readonly crypto: CryptoPart;
  readonly errors: ErrorsPart;
  readonly modules: NamedExports;
  readonly web: NamedExports;
  readonly webcrypto: NamedExports;
}

type LoadedModule = { exports: unknown };

type Receive = (kind: string, text: string) => void;

/** The last part: returns the function that receives the parent's messages. */
export function entry(
  { host: { host, reply }, ...parts }: GuestParts,
  errorModules: readonly string[],
): Receive {
  const { stringify, parse } = JSON;
  // biome-ignore lint/security/noGlobalEval: it is the engine's, inside the engine
  const evaluate = eval;
  const then = Function.prototype.call.bind(Promise.prototype.then) as (
    promise: Promise<unknown>,
    done: (value: unknown) => void,
    failed: (thrown: unknown) => void,
  ) => void;
  const { resolve } = Promise;
  const promises = Promise;
  const { Buffer } = parts.buffer;
  const built: Record<string, unknown> = {
    buffer: { Buffer, constants: { MAX_LENGTH: 2 ** 31 } },
    crypto: { ...parts.crypto, webcrypto: parts.webcrypto, subtle: parts.webcrypto['subtle'] },
    ...parts.modules,
  };
  for (const name of errorModules) built[name] = parts.errors.classes;
  let isDone = false;

  const globals = {
    ...parts.web,
    Buffer,
    crypto: parts.webcrypto,
    console: parts.logging.console,
    global: globalThis,
  };
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  }
  // The engine calls it with the frames of a stack, and a frame gives its function: of the prelude, too.
  Object.defineProperty(Error, 'prepareStackTrace', { value: undefined });
  // The engine seeds its generator once, and every engine starts as a copy of that engine.
  const floats = { left: new Float64Array(0), at: 0 };
  Object.defineProperty(Math, 'random', {
    value: function random() {
      if (floats.at === floats.left.length) {
        const words = new Uint32Array(Uint8Array.fromBase64(host.ask('random', '512')).buffer);
        const made = Array.from({ length: 64 }, (_none, at) => {
          const [high = 0, low = 0] = words.subarray(2 * at);
          return ((high >>> 5) * 67_108_864 + (low >>> 6)) / 9_007_199_254_740_992;
        });
        floats.left = Float64Array.from(made);
        floats.at = 0;
      }
      floats.at += 1;
      return floats.left[floats.at - 1];
    },
    writable: true,
    configurable: true,
  });

  function done(outcome: object): void {
    if (isDone) return;
    isDone = true;
    host.ask('done', stringify(outcome));
  }

  function finish(value: unknown): void {
    let text: string;
    try {
      text = stringify(value) ?? 'null';
    } catch (thrown) {
      done({ ended: isOutOfMemory(thrown) ? 'memory' : 'result not JSON' });
      return;
    }
    isDone = true;
    host.ask('done', `{"value":${text}}`);
  }

  function fail(thrown: unknown): void {
    if (isOutOfMemory(thrown)) done({ ended: 'memory' });
    else done({ error: { ...parts.errors.report(thrown), place: placeOf(thrown) } });
  }

  /** Where it was thrown, as `line:column`; empty if that is unknown. The stack may be a getter of the code. */
  function placeOf(thrown: unknown): string {
    try {
      const { stack } = Object(thrown) as Error;
      const [, line = '', column = ''] = /<input>:(\d+):(\d+)/.exec(String(stack)) ?? [];
      if (line !== '1') return line === '' ? '' : `${line}:${column}`;
      return `1:${Number(column) - beforeCode.length}`;
    } catch {
      return '';
    }
  }

  function isOutOfMemory(thrown: unknown): boolean {
    const isInternal =
      thrown instanceof (globalThis as unknown as { InternalError: typeof Error }).InternalError;
    return isInternal && /out of memory/.test(String((thrown as Error).message));
  }

  function requirer(moduleNames: readonly string[]) {
    const loaded = new Map<string, LoadedModule>();
    return function require(given: unknown): unknown {
      const requested = String(given);
      const name = requested.startsWith('node:') ? requested.slice('node:'.length) : requested;
      const known = loaded.get(name);
      if (known !== undefined) return known.exports;
      const module: LoadedModule = { exports: {} };
      const isOwn = moduleNames.includes(requested);
      if (isOwn || Object.hasOwn(built, name)) loaded.set(name, module);
      if (isOwn) evaluated(host.ask('module', requested), module, require);
      else if (Object.hasOwn(built, name)) module.exports = built[name];
      else
        throw host.error('ModuleNotFoundError', `Cannot find module '${requested.slice(0, 200)}'`);
      return module.exports;
    };
  }

  type Run = (this: unknown, ...given: unknown[]) => void;

  const beforeCode = '(function (exports, require, module, __filename, __dirname) {';

  /** The first line of the code stays the first line, so that line numbers in errors are correct. */
  function compiled(code: string): Run {
    return evaluate(`${beforeCode}${code}\n})`);
  }

  function evaluated(
    code: string,
    module: LoadedModule,
    require: (name: unknown) => unknown,
  ): void {
    compiled(code).call(module.exports, module.exports, require, module, '', '');
  }

  function functionOf({ code, moduleNames }: GuestCall): (input: object) => unknown {
    const module: LoadedModule = { exports: {} };
    evaluated(code, module, requirer(moduleNames));
    const exported = module.exports as { default?: unknown };
    const found = typeof exported === 'function' ? exported : exported?.default;
    if (typeof found === 'function') return found as (input: object) => unknown;
    const formula = parts.errors.classes['InvalidReactorFormulaError'] as new (
      text: string,
    ) => Error;
    throw new formula('the code exports no function');
  }

  function vaultClient() {
    const { request } = host;
    return {
      tokens: {
        retrieve: (id: unknown) => request('bt.tokens.retrieve', { id }),
        create: (body: unknown) => request('bt.tokens.create', { body }),
        update: (id: unknown, body: unknown) => request('bt.tokens.update', { id, body }),
        delete: (id: unknown) => request('bt.tokens.delete', { id }),
      },
      tokenize: (body: unknown) => request('bt.tokenize', { body }),
      detokenize: (body: unknown) => request('bt.detokenize', { body }),
    };
  }

  function inputOf({ contract, bt, input }: GuestCall): object {
    const client = bt ? vaultClient() : null;
    const { logger } = parts.logging;
    return { ...input, bt: client, vault: client, ...(contract === 'node22' && { logger }) };
  }

  function call(given: GuestCall): void {
    try {
      const run = functionOf(given);
      then(resolve.call(promises, run(inputOf(given))), finish, fail);
    } catch (thrown) {
      fail(thrown);
    }
  }

  function check(given: GuestCall): void {
    let isCompiled = false;
    try {
      compiled(given.code);
      isCompiled = true;
      functionOf(given);
      done({ value: null });
    } catch (thrown) {
      if (isOutOfMemory(thrown)) {
        done({ ended: 'memory' });
        return;
      }
      const { name, errors } = parts.errors.report(thrown);
      const error = { name, errors: { ...errors, ...(!isCompiled && { compile: [] }) } };
      done({ error: { ...error, place: placeOf(thrown) } });
    }
  }

  return function receive(kind: string, text: string): void {
    if (kind === 'reply') reply(parse(text));
    else {
      const given: GuestCall = parse(text);
      if (given.isCheck) check(given);
      else call(given);
    }
  };
}
