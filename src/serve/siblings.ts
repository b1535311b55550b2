/** The ways of an answering thread to the others: what it gives them of its imports, and takes of theirs. */
import assert from 'node:assert/strict';
import type { MessagePort } from 'node:worker_threads';
import {
  type ImportShared,
  type Sibling,
  SiblingEnded,
  type Siblings,
} from '../http/bulk/siblings.ts';
import { createLine, type Line } from './line.ts';
import type { PartInTurn, SiblingCalls } from './messages.ts';

export interface SiblingThreads {
  /** Those that have not ended. */
  readonly all: Siblings;
  /** @param port to another thread, which does the same with its other end. */
  add(port: MessagePort): void;
  /** Finishes what was taken of others; from then on they do it themselves. */
  close(): Promise<void>;
}

/** @param importShared does what another thread gives. */
export function createSiblingThreads(importShared: ImportShared): SiblingThreads {
  const siblings = new Map<MessagePort, Sibling>();
  const taken = new Set<Promise<unknown>>();

  function take(part: Promise<unknown>): void {
    taken.add(part);
    // Later than whoever waits for it sends its result.
    const forget = () => taken.delete(part);
    void part.catch(() => undefined).then(forget);
  }

  return {
    all: () => [...siblings.values()],
    add: (port) => {
      const turns = new Map<PartInTurn['turn'], () => Promise<void>>();
      let latest = 0;
      const line: Line<SiblingCalls> = createLine<SiblingCalls, SiblingCalls>(port, {
        importShared: ({ turn, ...part }) => {
          const result = importShared(part, () => line.call('turn', turn));
          take(result);
          return result;
        },
        turn: (id) => {
          const turn = turns.get(id);
          assert(turn, 'only the turn of a part that was given is asked for');
          return turn();
        },
      });
      siblings.set(port, {
        importShared: async (part, turn) => {
          const id = ++latest;
          turns.set(id, turn);
          try {
            return await line.call('importShared', { ...part, turn: id });
          } finally {
            turns.delete(id);
          }
        },
      });
      port.on('close', () => {
        siblings.delete(port);
        line.end(new SiblingEnded());
      });
    },
    close: async () => {
      while (taken.size > 0) await Promise.allSettled(taken);
      for (const port of siblings.keys()) port.close();
    },
  };
}
