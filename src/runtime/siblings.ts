/** The ways of a request thread to the others: what it gives them of its imports, and takes of theirs. */
import assert from 'node:assert/strict';
import type { MessagePort } from 'node:worker_threads';
import { createThreadRpc, type ThreadRpc } from '../base/thread-rpc.ts';
import {
  createLoad,
  type ImportShared,
  type Sibling,
  SiblingEnded,
  type Siblings,
} from '../http/bulk/siblings.ts';
import type { PartInTurn, SiblingCalls } from './messages.ts';

export interface SiblingThreads extends Siblings {
  /**
   * Resolves when the thread is known, or has ended.
   * @param port to it, of which it has the other end.
   */
  add(port: MessagePort): Promise<void>;
  /** Finishes what was taken of others; from then on they do it themselves. */
  close(): Promise<void>;
}

/** @param importShared does what another thread gives. */
export function createSiblingThreads(importShared: ImportShared): SiblingThreads {
  const siblings = new Map<MessagePort, Sibling>();
  const taken = new Set<Promise<unknown>>();
  const load = createLoad();

  function take(part: Promise<unknown>): void {
    taken.add(part);
    load.add(1);
    // Runs after the caller that awaits the part has sent its result.
    const forget = () => {
      taken.delete(part);
      load.add(-1);
    };
    void part.catch(() => undefined).then(forget);
  }

  return {
    load,
    all: () => [...siblings.values()],
    add: async (port) => {
      const turns = new Map<PartInTurn['turn'], () => Promise<void>>();
      let latest = 0;
      const rpc: ThreadRpc<SiblingCalls> = createThreadRpc<SiblingCalls, SiblingCalls>(port, {
        importShared: ({ turn, ...part }) => {
          const result = importShared(part, () => rpc.call('turn', turn));
          take(result);
          return result;
        },
        load: () => load.memory,
        turn: (id) => {
          const turn = turns.get(id);
          assert(turn, 'only the turn of a part that was given is asked for');
          return turn();
        },
      });
      port.on('close', () => {
        siblings.delete(port);
        rpc.end(new SiblingEnded());
      });
      const memory = await rpc.call('load', undefined).catch(() => undefined);
      if (memory === undefined) return;
      siblings.set(port, {
        load: createLoad(memory),
        importShared: async (part, turn) => {
          const id = ++latest;
          turns.set(id, turn);
          try {
            return await rpc.call('importShared', { ...part, turn: id });
          } finally {
            turns.delete(id);
          }
        },
      });
    },
    close: async () => {
      while (taken.size > 0) await Promise.allSettled(taken);
      for (const port of siblings.keys()) port.close();
    },
  };
}
