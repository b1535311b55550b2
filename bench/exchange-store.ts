/** Preloaded into a vault under measurement: exchanges its store for one without a log. */
import { registerHooks } from 'node:module';

const exchanged = new Map(
  Object.entries({
    '../src/store/open/open.ts': 'store-without-log.ts',
    '../src/store/change.ts': 'change-without-log.ts',
  }).map(([product, ours]) => [urlOf(product), urlOf(ours)]),
);

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const url = exchanged.get(found.url);
    return url === undefined || context.parentURL === url ? found : { ...found, url };
  },
});

function urlOf(path: string): string {
  return new URL(path, import.meta.url).href;
}
