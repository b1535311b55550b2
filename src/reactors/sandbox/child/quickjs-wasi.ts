/** QuickJS-ng by `quickjs-wasi`: a snapshot of memory after the prelude, copied into a new instance for each call. */
import { readFileSync } from 'node:fs';
import {
  JSException,
  type JSValueHandle,
  QuickJS,
  type QuickJSOptions,
  type Snapshot,
} from 'quickjs-wasi';
import {
  type Engine,
  EngineError,
  type EngineOptions,
  type HostFunction,
  type OpenEngine,
} from './engine.ts';

interface MemoryImage {
  readonly textLengthMax: number;
  /** Metadata of the snapshot, without its bytes. */
  readonly snapshot: Snapshot;
  /** The bytes that differ from those of a new instance: less than a third. */
  readonly runs: readonly ByteRun[];
  readonly entry: number;
  readonly options: QuickJSOptions;
}

interface ByteRun {
  readonly at: number;
  readonly bytes: Uint8Array;
}

export const openQuickJsWasi: OpenEngine = async (options) => {
  const settings = settingsOf(options);
  const engine = await QuickJS.create(settings);
  const host = engine.newFunction('host', () => engine.undefined);
  engine.setProp(engine.global, 'host', host);
  const entry = engine.evalCode(options.prelude, 'prelude');
  engine.executePendingJobs();
  engine.runGC();
  const token = engine.exportHandle(entry);
  const { textLengthMax } = options;
  const image = await imageOf(engine.snapshot(), {
    entry: token,
    options: settings,
    textLengthMax,
  });
  engine.dispose();
  return { start: (host) => start(image, host) };
};

/**
 * The library copies the whole snapshot, and the first write to each page of memory is a page fault: 1 ms of 4 was
 * spent on pages that are zero before and after.
 */
async function imageOf(
  full: Snapshot,
  more: Pick<MemoryImage, 'entry' | 'options' | 'textLengthMax'>,
): Promise<MemoryImage> {
  const { byteLength } = full.memory;
  const nothing = { length: 0, byteLength } as unknown as Uint8Array;
  const snapshot = { ...full, memory: nothing };
  const begun = await QuickJS.restore(snapshot, more.options);
  const runs = differences(full.memory, new Uint8Array(begun._getMemory().buffer));
  return { snapshot, runs, ...more };
}

const pageBytes = 4096;

function differences(memory: Uint8Array, begun: Uint8Array): readonly ByteRun[] {
  const runs: ByteRun[] = [];
  for (let at = 0; at < memory.length; at += pageBytes) {
    const bytes = memory.slice(at, at + pageBytes);
    if (Buffer.compare(bytes, begun.subarray(at, at + pageBytes)) !== 0) runs.push({ at, bytes });
  }
  return runs;
}

function settingsOf({ memoryBytesMax, stackBytesMax, mustStop }: EngineOptions): QuickJSOptions {
  return {
    wasm: compiled('quickjs-wasi/quickjs.wasm'),
    extensions: [{ name: 'url', wasm: compiled('quickjs-wasi/url.so') }],
    memoryLimit: memoryBytesMax,
    maxStackSize: stackBytesMax,
    interruptHandler: mustStop,
    timezoneOffset: 0,
    // The standard output of the process is the channel: the engine must not write to it.
    wasi: () => ({ fd_write: () => errnoBadDescriptor }),
  };
}

const errnoBadDescriptor = 8;

/** TypeScript declares it with the browser's library only. */
const { WebAssembly } = globalThis as unknown as {
  readonly WebAssembly: { readonly Module: new (bytes: Uint8Array) => QuickJSOptions['wasm'] };
};

function compiled(name: string): QuickJSOptions['wasm'] {
  return new WebAssembly.Module(readFileSync(new URL(import.meta.resolve(name))));
}

async function start(image: MemoryImage, host: HostFunction): Promise<Engine> {
  const engine = await QuickJS.restore(image.snapshot, image.options);
  const memory = new Uint8Array(engine._getMemory().buffer);
  for (const { at, bytes } of image.runs) memory.set(bytes, at);
  engine.registerHostCallback('host', (operation, text) => {
    // Converting anything except a string would run code.
    if (!operation?.isString || !text?.isString) return engine.undefined;
    if (operation.length > image.textLengthMax) return engine.undefined;
    const given = text.length > image.textLengthMax ? undefined : text.toString();
    return engine.newString(host(operation.toString(), given));
  });
  const entry = engine.importHandle(image.entry);

  function enter(kind: string, text: string): void {
    const handles: JSValueHandle[] = [];
    try {
      handles.push(engine.newString(kind), engine.newString(text));
      handles.push(engine.callFunction(entry, engine.undefined, ...handles));
      engine.executePendingJobs();
    } catch (error) {
      throw new EngineError(reasonOf(error));
    }
    for (const handle of handles) handle.dispose();
  }

  return {
    enter,
    memoryBytes: () => engine._getMemory().buffer.byteLength,
    // Memory is released as a whole, so freeing values one by one would waste time.
    end: () => undefined,
  };
}

function reasonOf(error: unknown): 'memory' | 'crashed' {
  const isMemory = error instanceof JSException && /out of memory/.test(error.message);
  return isMemory ? 'memory' : 'crashed';
}
