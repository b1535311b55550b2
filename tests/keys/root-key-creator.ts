/** One of several threads that create the same root key file at the same moment. */
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../src/base/clock.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { openRootKeys } from '../../src/keys/root/sources.ts';

const { file, gate, threads } = workerData as { file: string; gate: Int32Array; threads: number };

// The last to arrive opens the gate for all.
if (Atomics.add(gate, 0, 1) + 1 === threads) {
  Atomics.store(gate, 1, 1);
  Atomics.notify(gate, 1);
}
Atomics.wait(gate, 1, 0);

const { chosen } = await openRootKeys({
  source: 'file',
  read: () => undefined,
  environment: {},
  file,
  createIfMissing: true,
  clock: systemClock,
  random: pooledRandom(),
});
const { keyId: key } = await chosen.current();
parentPort?.postMessage({ key, created: chosen.created });
