/** Globals of browsers and Node that the engine lacks: fetch and its classes, timers, text encoding. */
import type { Host } from './host.ts';
import type { BufferPart, GuestBuffer, NamedExports } from './parts.ts';

export function web(host: Host, { Buffer, encode, bytesOf }: BufferPart): NamedExports {
  type Pairs = Iterable<readonly [unknown, unknown]> | Record<string, unknown>;

  class TextEncoder {
    readonly encoding = 'utf-8';

    encode(text: unknown = ''): Uint8Array {
      return encode(String(text));
    }
  }

  class TextDecoder {
    readonly encoding: string;
    readonly fatal: boolean;
    readonly ignoreBOM: boolean;

    constructor(label = 'utf-8', options: { fatal?: boolean; ignoreBOM?: boolean } = {}) {
      this.encoding = String(label).toLowerCase().replace('utf8', 'utf-8');
      this.fatal = options.fatal === true;
      this.ignoreBOM = options.ignoreBOM === true;
    }

    decode(data: unknown = new Uint8Array()): string {
      const { encoding, fatal, ignoreBOM } = this;
      const options = JSON.stringify({ encoding, fatal, ignoreBOM });
      return host.ask(`text:${options}`, bytesOf(data).toBase64());
    }
  }

  class Headers {
    readonly #pairs = new Map<string, string>();

    constructor(given: Headers | Pairs = {}) {
      const pairs =
        Symbol.iterator in given ? (given as Iterable<[string, unknown]>) : Object.entries(given);
      for (const [name, value] of pairs) this.append(name, value);
    }

    append(name: unknown, value: unknown): void {
      const before = this.get(name);
      this.set(name, before === null ? value : `${before}, ${value}`);
    }

    set(name: unknown, value: unknown): void {
      this.#pairs.set(String(name).toLowerCase(), String(value).trim());
    }

    get(name: unknown): string | null {
      return this.#pairs.get(String(name).toLowerCase()) ?? null;
    }

    has(name: unknown): boolean {
      return this.#pairs.has(String(name).toLowerCase());
    }

    delete(name: unknown): void {
      this.#pairs.delete(String(name).toLowerCase());
    }

    forEach(visit: (value: string, name: string, headers: Headers) => void): void {
      for (const [name, value] of this) visit(value, name, this);
    }

    keys() {
      return this.#pairs.keys();
    }

    values() {
      return this.#pairs.values();
    }

    entries() {
      return this.#pairs.entries();
    }

    [Symbol.iterator]() {
      return this.#pairs.entries();
    }
  }

  interface ResponseFields {
    readonly status?: number;
    readonly statusText?: string;
    readonly headers?: Headers | Pairs;
    readonly url?: string;
  }

  class Response {
    readonly #body: GuestBuffer;
    readonly status: number;
    readonly statusText: string;
    readonly ok: boolean;
    readonly url: string;
    readonly headers: Headers;
    bodyUsed = false;

    constructor(body: unknown = '', fields: ResponseFields = {}) {
      const isEmpty = body === null || body === undefined;
      this.#body = Buffer.from(isEmpty ? '' : (body as string));
      this.status = fields.status ?? 200;
      this.statusText = fields.statusText ?? '';
      this.ok = this.status >= 200 && this.status < 300;
      this.url = fields.url ?? '';
      this.headers = new Headers(fields.headers);
    }

    #taken() {
      if (this.bodyUsed) throw new TypeError('Body has already been read');
      this.bodyUsed = true;
      return this.#body;
    }

    async text(): Promise<string> {
      return this.#taken().toString();
    }

    async json(): Promise<unknown> {
      return JSON.parse(this.#taken().toString());
    }

    async arrayBuffer(): Promise<ArrayBuffer> {
      return Uint8Array.from(this.#taken()).buffer;
    }

    async bytes(): Promise<Uint8Array> {
      return Uint8Array.from(this.#taken());
    }

    clone(): Response {
      return new Response(this.#body, this);
    }
  }

  class AbortSignal {
    readonly #listeners: (() => void)[] = [];
    aborted = false;
    reason: unknown;
    onabort: (() => void) | null = null;

    static timeout(ms: number): AbortSignal {
      const signal = new AbortSignal();
      setTimeout(() => signal.abort(host.error('TimeoutError', 'The operation timed out')), ms);
      return signal;
    }

    addEventListener(name: string, listener: () => void): void {
      if (name === 'abort') this.#listeners.push(listener);
    }

    removeEventListener(_name: string, listener: () => void): void {
      const at = this.#listeners.indexOf(listener);
      if (at !== -1) this.#listeners.splice(at, 1);
    }

    throwIfAborted(): void {
      if (this.aborted) throw this.reason;
    }

    abort(reason: unknown = host.error('AbortError', 'This operation was aborted')): void {
      if (this.aborted) return;
      this.aborted = true;
      this.reason = reason;
      this.onabort?.();
      for (const listener of this.#listeners.splice(0)) listener();
    }
  }

  class AbortController {
    readonly signal = new AbortSignal();

    abort(reason?: unknown): void {
      this.signal.abort(reason);
    }
  }

  interface Init {
    readonly method?: string;
    readonly headers?: Headers | Pairs;
    readonly body?: unknown;
    readonly signal?: AbortSignal | null;
  }

  interface Fetched extends ResponseFields {
    readonly body: string;
  }

  /** Uses the vault's own client, for hosts that the reactor may call. */
  async function fetch(url: unknown, init: Init = {}): Promise<Response> {
    const headers = new Headers(init.headers ?? {});
    const { body, signal } = init;
    const form = globalThis.URLSearchParams;
    if (form !== undefined && body instanceof form && !headers.has('content-type')) {
      headers.set('content-type', 'application/x-www-form-urlencoded;charset=UTF-8');
    } else if (typeof body === 'string' && !headers.has('content-type')) {
      headers.set('content-type', 'text/plain;charset=UTF-8');
    }
    const isBytes =
      typeof body === 'object' && (ArrayBuffer.isView(body) || body instanceof ArrayBuffer);
    const content = isBytes ? bytesOf(body) : encode(String(body ?? ''));
    signal?.throwIfAborted();
    const replied = host.request('fetch', {
      url: String(url),
      method: String(init.method ?? 'GET').toUpperCase(),
      headers: [...headers],
      ...(body !== undefined && body !== null && { body: content.toBase64() }),
    }) as Promise<Fetched>;
    const reply = await (signal ? Promise.race([replied, aborted(signal)]) : replied);
    return new Response(Uint8Array.fromBase64(reply.body), reply);
  }

  function aborted(signal: AbortSignal): Promise<never> {
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  }

  const timers = new Set<number>();
  let timersMade = 0;

  function setTimeout(
    run: (...given: unknown[]) => void,
    ms: unknown = 0,
    ...given: unknown[]
  ): number {
    timersMade += 1;
    const timer = timersMade;
    timers.add(timer);
    const elapsed = host.request('timer', { ms: Math.max(0, Number(ms) || 0) });
    elapsed.then(() => timers.delete(timer) && run(...given));
    return timer;
  }

  function clearTimeout(timer: unknown): void {
    timers.delete(timer as number);
  }

  return {
    TextEncoder,
    TextDecoder,
    Headers,
    Response,
    AbortSignal,
    AbortController,
    fetch,
    setTimeout,
    clearTimeout,
  };
}
