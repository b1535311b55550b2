/** The second choice of an engine, as an adapter: it shows that nothing else depends on the first. */
import variant from '@jitl/quickjs-ng-wasmfile-release-sync';
import {
  newQuickJSWASMModuleFromVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSSyncVariant,
} from 'quickjs-emscripten-core';
import {
  EngineError,
  type EngineOptions,
  type HostFunction,
  type OpenEngine,
} from '../../src/reactors/sandbox/child/engine.ts';

/** Without snapshots: each engine has a module, and so a memory, of its own, and evaluates the prelude. */
export const openQuickJsEmscripten: OpenEngine = async (options) => ({
  start: (host) => start(options, host),
});

async function start(options: EngineOptions, host: HostFunction) {
  const module = await newQuickJSWASMModuleFromVariant(variant as unknown as QuickJSSyncVariant);
  const context = module.newContext();
  context.runtime.setMemoryLimit(options.memoryBytesMax);
  context.runtime.setMaxStackSize(options.stackBytesMax);
  context.runtime.setInterruptHandler(options.mustStop);
  const asked = context.newFunction('host', (operation, text) => {
    const length = context.getNumber(context.getProp(text, 'length'));
    const given = length > options.textLengthMax ? undefined : context.getString(text);
    return context.newString(host(context.getString(operation), given));
  });
  context.setProp(context.global, 'host', asked);
  const entry = context.unwrapResult(context.evalCode(options.prelude, 'prelude'));
  return {
    enter: (kind: string, text: string) => enter(context, { entry, kind, text }),
    memoryBytes: () => Number(module.getWasmMemory().buffer.byteLength),
    end: () => undefined,
  };
}

interface Entering {
  readonly entry: QuickJSHandle;
  readonly kind: string;
  readonly text: string;
}

function enter(context: QuickJSContext, { entry, kind, text }: Entering): void {
  try {
    const given = [kind, text].map((one) => context.newString(one));
    context.unwrapResult(context.callFunction(entry, context.undefined, ...given)).dispose();
    const jobs = context.runtime.executePendingJobs();
    if (jobs.error) throw jobs.error;
  } catch (error) {
    const isMemory = error instanceof Error && /out of memory/.test(error.message);
    throw new EngineError(isMemory ? 'memory' : 'crashed');
  }
}
