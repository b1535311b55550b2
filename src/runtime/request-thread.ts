/** The code of a request thread: it builds the server, listens, and stops on request. */
import assert from 'node:assert/strict';
import { flushCompileCache } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { createThreadRpc, type ThreadRpc } from '../base/thread-rpc.ts';
import { ConfigError } from './config/problems.ts';
import type { ProcessCalls, ThreadCalls, ThreadData } from './messages.ts';
import { openRemote, type Remote } from './remote.ts';
import { createRequestWorker, type RequestWorker } from './request-worker.ts';
import { createSiblingThreads, type SiblingThreads } from './siblings.ts';

interface PreparedThread {
  readonly remote: Remote;
  readonly worker: RequestWorker;
  readonly siblings: SiblingThreads;
  readonly host: string;
}

async function prepare(rpc: ThreadRpc<ProcessCalls>, data: ThreadData): Promise<PreparedThread> {
  const remote = await openRemote(rpc, data);
  try {
    const siblings = createSiblingThreads((part, turn) => worker.importShared(part, turn));
    const tools = { ...remote, siblings };
    const worker = await createRequestWorker(tools, data.config, data);
    return { remote, worker, siblings, host: data.config.host };
  } catch (error) {
    await remote.close();
    throw error;
  }
}

function run(): void {
  assert(parentPort, 'an worker thread has a parent');
  let preparing: Promise<PreparedThread> | undefined;
  const prepared = () => {
    assert(preparing, 'the process prepares a thread first');
    return preparing;
  };
  const rpc: ThreadRpc<ProcessCalls> = createThreadRpc<ProcessCalls, ThreadCalls>(parentPort, {
    prepare: async (data) => {
      preparing = prepare(rpc, data);
      await preparing;
    },
    listen: async (port) => {
      const { worker, host } = await prepared();
      const listening = await worker.listen({ host, port, isShared: true });
      // A thread that is ended keeps nothing for the next start.
      flushCompileCache();
      return listening;
    },
    apply: async (settings) => {
      const { worker } = await prepared();
      try {
        worker.apply(settings);
        return { problems: [] };
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        return { problems: error.problems };
      }
    },
    counts: async () => (await prepared()).remote.counts(),
    addSibling: async (port) => (await prepared()).siblings.add(port),
    stop: async () => {
      const { worker, siblings, remote } = await prepared();
      await worker.close();
      await siblings.close();
      await remote.close();
    },
  });
}

run();
