/**
 * Runs first in each thread of a test file. The largest libraries come from the files that the runner made of them, and
 * the vault's own threads from the package, whose few files load in a third of the time. The sources are found without
 * asking the disk, as Node would for each of some six thousand imports.
 */
import { registerHooks } from 'node:module';
import { isMainThread } from 'node:worker_threads';
import { noteTimesAtExit } from './times.ts';

const urls = new Map(Object.entries<string>(JSON.parse(process.env['TEST_MODULES'] ?? '{}')));

registerHooks({
  resolve: (name, { parentURL, ...context }, next) => {
    if (name.startsWith('.') && name.endsWith('.ts') && parentURL?.startsWith('file:')) {
      const { href } = new URL(name, parentURL);
      return { url: href, format: 'module-typescript', shortCircuit: true };
    }
    const url = urls.get(name);
    return url === undefined
      ? next(name, { ...context, parentURL })
      : { url, format: 'module', shortCircuit: true };
  },
});

if (isMainThread) noteTimesAtExit();
