/** One of several threads that create the same root key file at the same moment. */
import { parentPort, workerData } from 'node:worker_threads';
import { pooledRandom } from '../../src/base/random.ts';
import { loadRootKey } from '../../src/keys/root-key.ts';

const { file, gate, threads } = workerData as { file: string; gate: Int32Array; threads: number };

// The last to arrive opens the gate for all.
if (Atomics.add(gate, 0, 1) + 1 === threads) {
  Atomics.store(gate, 1, 1);
  Atomics.notify(gate, 1);
}
Atomics.wait(gate, 1, 0);

const { key, created } = loadRootKey({ file, createIfMissing: true, random: pooledRandom() });
parentPort?.postMessage({ key: key.export().toString('hex'), created });
