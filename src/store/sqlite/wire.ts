/** What crosses between the writer thread and those that commit through it, and one end of such a line. */
import type { MessagePort } from 'node:worker_threads';
import type { Prover } from '../../lib/log-chain/proof.ts';
import type { FlatChange, Precondition, RowOperation } from '../change.ts';
import type { SqlValue } from '../tables.ts';
import { uncertain } from '../unavailable.ts';
import { type PackedEntries, packEntries } from './packed-entries.ts';

/** Changes that become one commit, unless it is later than `giveUpAt` by then. */
export interface WireGroup {
  /** Those that write rows. */
  readonly changes: readonly FlatChange[];
  /** The entries of those that write none, most of which are reads. */
  readonly notes: readonly PackedEntries[];
  /** Those of all changes, each once: to post a key costs as much as to post a change. */
  readonly provers: readonly Prover[];
  readonly giveUpAt: number;
}

/** What came of a group: of each change that writes rows, and of all others, which come to the same. */
export type WireReply =
  | 'done'
  | { readonly outcomes: readonly WireOutcome[]; readonly notes: WireOutcome };

export interface WireOutcome {
  readonly conflict?: Precondition;
  /** The engine could not do it; the text is for the operator. */
  readonly unavailable?: string;
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
  /** What was sent and has no outcome by now fails: only the writer knows whether it was done. */
  end(): void;
}

interface PendingGroup {
  resolve(reply: WireReply): void;
  reject(error: Error): void;
}

/** @param onEnd is called once nothing more can be sent, whoever ended it. */
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
        const provers = proversOf(changes);
        port.postMessage({ ...contentsOf(changes), provers, giveUpAt } satisfies WireGroup);
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
  return changes.map((change) =>
    writesRows(change) ? (reply.outcomes[written++] ?? reply.notes) : reply.notes,
  );
}

function writesRows({ operations }: FlatChange): boolean {
  return operations.length > 0;
}

function contentsOf(changes: readonly FlatChange[]): Pick<WireGroup, 'changes' | 'notes'> {
  const noting = changes.filter((change) => !writesRows(change));
  return {
    changes: changes.filter(writesRows).map(toWire),
    notes: packEntries(noting.flatMap(({ entries }) => entries)),
  };
}

/** The change without memory that it shares: a pool holds plaintexts, and all of it would be sent. */
export function toWire({ operations, entries }: FlatChange): FlatChange {
  return { operations: operations.map(detached), entries, provers: [] };
}

/** Posting copies the whole buffer below a view. */
function detached(operation: RowOperation): RowOperation {
  const { table, action, values } = operation;
  const isShared = (value: SqlValue) =>
    value instanceof Uint8Array && value.byteLength < value.buffer.byteLength;
  if (!values.some(isShared)) return operation;
  return {
    table,
    action,
    values: values.map((value) => (isShared(value) ? new Uint8Array(value as Uint8Array) : value)),
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
