/** The code of an answering thread: it builds what answers, listens, and stops when it is asked to. */
import assert from 'node:assert/strict';
import { flushCompileCache } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { type Answering, createAnswering } from '../answering.ts';
import { createThreadRpc, type ThreadRpc } from '../lib/thread-rpc.ts';
import type { ProcessCalls, ThreadCalls, ThreadData } from './messages.ts';
import { openRemote, type Remote } from './remote.ts';
import { createSiblingThreads, type SiblingThreads } from './siblings.ts';

interface PreparedThread {
  readonly remote: Remote;
  readonly answering: Answering;
  readonly siblings: SiblingThreads;
  readonly host: string;
}

async function prepare(rpc: ThreadRpc<ProcessCalls>, data: ThreadData): Promise<PreparedThread> {
  const remote = await openRemote(rpc, data);
  try {
    const siblings = createSiblingThreads((part, turn) => answering.importShared(part, turn));
    const tools = { ...remote, siblings };
    const answering = await createAnswering(tools, data.config, data);
    return { remote, answering, siblings, host: data.config.host };
  } catch (error) {
    await remote.close();
    throw error;
  }
}

function run(): void {
  assert(parentPort, 'an answering thread has a parent');
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
      const { answering, host } = await prepared();
      const listening = await answering.listen({ host, port, isShared: true });
      // A thread that is ended keeps nothing for the next start.
      flushCompileCache();
      return listening;
    },
    setTls: async (pair) => (await prepared()).answering.setTls(pair),
    counts: async () => (await prepared()).remote.counts(),
    addSibling: async (port) => (await prepared()).siblings.add(port),
    stop: async () => {
      const { answering, siblings, remote } = await prepared();
      await answering.close();
      await siblings.close();
      await remote.close();
    },
  });
}

run();
