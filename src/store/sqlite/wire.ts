/** The messages between the writer thread and the threads that commit through it, and one end of that channel. */
import type { MessagePort } from 'node:worker_threads';
import type { FlatChange, Precondition } from '../change.ts';
import type { Prover } from '../log-chain/proof.ts';
import { movedTexts } from '../outgoing-copy.ts';
import { uncertain } from '../unavailable.ts';
import { packGroup, type WireGroup } from './packed-group.ts';

/** The outcomes of a group: one for each change that writes rows, and one for all others together. */
export type WireReply =
  | 'done'
  | { readonly outcomes: readonly WireOutcome[]; readonly notes: NotesOutcome };

export interface NotesOutcome extends WireOutcome {
  /** Of these, which were moved to another vault, nothing was done. */
  readonly movedTenants?: ReadonlySet<string>;
}

export interface WireOutcome {
  readonly conflict?: Precondition;
  /** The engine could not do it; the text is for the operator. */
  readonly unavailable?: string;
  /** It would grow while the disk is nearly full. */
  readonly isShort?: true;
  /** The vault was moved to another place; the text says whether that is open. */
  readonly moved?: string;
  /** The engine never will. */
  readonly unstorable?: string;
}

/** Any changes, as {@link WireGroup}. */
export interface CommittingGroup {
  readonly changes: readonly FlatChange[];
  readonly giveUpAt: number;
}

/** A way to the writer thread, for groups alone. */
export interface WriterLine {
  /** One outcome for each change, in their order, once the group is durable. */
  commit(group: CommittingGroup): Promise<readonly WireOutcome[]>;
  /** Groups without an outcome fail: only the writer knows whether they were committed. */
  end(): void;
}

interface PendingGroup {
  resolve(reply: WireReply): void;
  reject(error: Error): void;
}

/** @param onEnd is called when nothing more can be sent, whichever side ended the connection. */
export function writerLine(port: MessagePort, onEnd: () => void): WriterLine {
  let waiting: PendingGroup[] = [];

  function end(): void {
    port.close();
    const abandoned = waiting;
    waiting = [];
    for (const { reject } of abandoned) reject(uncertain('the writer thread ended'));
    onEnd();
  }

  port.on('message', (reply: WireReply) => waiting.shift()?.resolve(reply));
  port.on('close', end);
  return {
    commit: async ({ changes, giveUpAt }) => {
      const reply = await new Promise<WireReply>((resolve, reject) => {
        const packed = packGroup(groupOf({ changes, giveUpAt }));
        port.postMessage(packed, [packed.operations.bytes.buffer]);
        waiting.push({ resolve, reject });
      });
      return outcomesOf(changes, reply);
    },
    end,
  };
}

const done: WireOutcome = {};

function outcomesOf(changes: readonly FlatChange[], reply: WireReply): readonly WireOutcome[] {
  if (reply === 'done') return changes.map(() => done);
  let written = 0;
  return changes.map((change) => {
    if (writesRows(change)) return reply.outcomes[written++] ?? reply.notes;
    const [entry] = change.entries;
    const isMoved = entry && reply.notes.movedTenants?.has(entry.tenant_id);
    return isMoved ? { moved: movedTexts.tenant } : reply.notes;
  });
}

function writesRows({ operations }: FlatChange): boolean {
  return operations.length > 0;
}

function groupOf({ changes, giveUpAt }: CommittingGroup): WireGroup {
  const noting = changes.filter((change) => !writesRows(change));
  return {
    changes: changes.filter(writesRows),
    notes: noting.flatMap(({ entries }) => entries),
    provers: proversOf(changes),
    giveUpAt,
  };
}

/** Those of all changes, one for each tenant. */
function proversOf(changes: readonly FlatChange[]): Prover[] {
  const provers = new Map<string, Prover>();
  for (const change of changes) {
    for (const prover of change.provers) provers.set(prover.tenant_id, prover);
  }
  return [...provers.values()];
}
