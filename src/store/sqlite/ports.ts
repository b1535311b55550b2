/** The writer's ports: the groups that wait on all of them become one transaction. */
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { groupMax, monotonicMs, weightOf } from '../commit/queue.ts';
import { type PackedGroup, unpackGroup, type WireGroup } from './packed-group.ts';
import type { WireReply } from './wire.ts';

interface ArrivedGroup extends WireGroup {
  readonly port: MessagePort;
}

export interface Ports {
  /** From now on what comes through the port is committed, and its outcomes go back through it. */
  add(port: MessagePort): void;
  close(): void;
}

/** @param commit one transaction. */
export function servePorts(commit: (group: WireGroup) => WireReply): Ports {
  const ports = new Set<MessagePort>();
  let waiting: ArrivedGroup[] = [];

  function drain(): void {
    for (const port of ports) {
      for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) {
        waiting.push({ port, ...unpackGroup(next.message as PackedGroup) });
      }
    }
  }

  function serve(groups: readonly ArrivedGroup[]): void {
    for (const [at, reply] of commitTogether(commit, groups).entries()) {
      groups[at]?.port.postMessage(reply);
    }
  }

  return {
    add: (port) => {
      ports.add(port);
      port.on('close', () => ports.delete(port));
      port.on('message', (group: PackedGroup) => {
        waiting.push({ port, ...unpackGroup(group) });
        drain();
        while (waiting.length > 0) {
          const length = groupsInOne(waiting);
          const groups = waiting.slice(0, length);
          waiting = waiting.slice(length);
          serve(groups);
        }
      });
    },
    close: () => {
      for (const port of ports) port.close();
    },
  };
}

/** So many of the groups, the first ones, make one transaction: bounded as each of them is by itself. */
function groupsInOne(groups: readonly Pick<WireGroup, 'changes' | 'notes'>[]): number {
  if (groups.length < 2) return groups.length;
  const sum = { changes: 0, rows: 0, bytes: 0 };
  for (const [at, { changes, notes }] of groups.entries()) {
    sum.changes += changes.length + notes.length;
    for (const { rows, bytes } of [...changes, { operations: [], entries: notes }].map(weightOf)) {
      sum.rows += rows;
      sum.bytes += bytes;
    }
    const isFull =
      sum.changes > groupMax.changes || sum.rows > groupMax.rows || sum.bytes > groupMax.bytes;
    if (isFull) return Math.max(1, at);
  }
  return groups.length;
}

function commitTogether(
  commit: (group: WireGroup) => WireReply,
  groups: readonly WireGroup[],
): readonly WireReply[] {
  const [only] = groups;
  if (only && groups.length === 1) return [commit(only)];
  const changes = groups.flatMap((group) => group.changes);
  const notes = groups.flatMap((group) => group.notes);
  const provers = groups.flatMap((group) => group.provers);
  const giveUpAt = Math.min(...groups.map((group) => group.giveUpAt));
  const reply = commit({ changes, notes, provers, giveUpAt });
  if (reply === 'done') return groups.map(() => reply);
  // The time of one ran out, which leaves the others what they have.
  const hasRunOut = monotonicMs() >= giveUpAt;
  const all = [...reply.outcomes, reply.notes];
  if (hasRunOut && all.every(({ unavailable }) => unavailable !== undefined)) {
    return groups.map(commit);
  }
  let replied = 0;
  return groups.map((group) => {
    const from = replied;
    replied += group.changes.length;
    return { outcomes: reply.outcomes.slice(from, replied), notes: reply.notes };
  });
}
