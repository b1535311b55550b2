/** Preloaded into a vault under measurement: exchanges its store for one without a log. */
import { registerHooks } from 'node:module';

const product = new URL('../src/store/open/open.ts', import.meta.url).href;
const withoutLog = new URL('store-without-log.ts', import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    return found.url === product && context.parentURL !== withoutLog
      ? { ...found, url: withoutLog }
      : found;
  },
});
