/** Runs first in each thread of a test file: the largest libraries come from the files that the runner made of them. */
import { registerHooks } from 'node:module';

const urls = new Map(Object.entries<string>(JSON.parse(process.env['TEST_PACKAGES'] ?? '{}')));

registerHooks({
  resolve: (name, context, next) => {
    const url = urls.get(name);
    return url === undefined ? next(name, context) : { url, format: 'module', shortCircuit: true };
  },
});
