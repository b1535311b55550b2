/** Long work in parts: between them the process serves others. */
import { setImmediate } from 'node:timers/promises';

/** How long others wait for one part after another. */
const turnMs = 10;

/** Gives what is to be awaited between two parts: it lets others in once they have waited long enough. */
export function createPause(): () => Promise<void> {
  let began = performance.now();
  return async () => {
    if (performance.now() - began < turnMs) return;
    await setImmediate();
    began = performance.now();
  };
}
