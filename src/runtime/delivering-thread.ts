/** The code of the thread that delivers events to webhooks. It starts and stops on request of the process. */
import assert from 'node:assert/strict';
import { parentPort } from 'node:worker_threads';
import { version } from '../base/installation/manifest.ts';
import { createThreadRpc, type ThreadRpc } from '../base/thread-rpc.ts';
import { createDelivering } from './delivery-worker.ts';
import type { ProcessCalls, ThreadCalls, ThreadData } from './messages.ts';
import { openRemote } from './remote.ts';

async function prepare(rpc: ThreadRpc<ProcessCalls>, data: ThreadData) {
  const remote = await openRemote(rpc, data);
  const { leaseHolder: holder } = data;
  assert(holder !== undefined, 'a server has a name');
  const deliverer = createDelivering({ ...remote, holder, version }, data.config);
  return { remote, deliverer };
}

function run(): void {
  assert(parentPort, 'a delivering thread has a parent');
  let preparing: ReturnType<typeof prepare> | undefined;
  const prepared = () => {
    assert(preparing, 'the process prepares a thread first');
    return preparing;
  };
  const rpc: ThreadRpc<ProcessCalls> = createThreadRpc<ProcessCalls, ThreadCalls>(parentPort, {
    prepare: async (data) => {
      preparing = prepare(rpc, data);
      await preparing;
    },
    listen: () => assert.fail('it does not listen'),
    apply: () => assert.fail('it serves no clients'),
    addSibling: () => assert.fail('it answers no requests'),
    counts: async () => (await prepared()).remote.counts(),
    stop: async () => {
      const { deliverer, remote } = await prepared();
      await deliverer.stop();
      await remote.close();
    },
  });
}

run();
