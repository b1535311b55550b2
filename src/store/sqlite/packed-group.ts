/**
 * Groups on their way to the writer thread. A few long arrays, texts and one run of bytes are posted for a sixth of
 * what the same changes cost as objects.
 */
import assert from 'node:assert/strict';
import type { Instant } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import { columnsOf, type FlatChange, type RowOperation } from '../change.ts';
import type { WrittenEntry } from '../log-chain/block.ts';
import type { Prover } from '../log-chain/proof.ts';
import type { SqlValue, Table } from '../tables.ts';

/** Changes that become one commit, unless it is later than `giveUpAt` by then. */
export interface WireGroup {
  /** Those that write rows. */
  readonly changes: readonly FlatChange[];
  /** The entries of those that write none, most of which are reads. */
  readonly notes: readonly WrittenEntry[];
  /** Those of all changes, each once: to post a key costs as much as to post a change. */
  readonly provers: readonly Prover[];
  /** By `monotonicMs`. */
  readonly giveUpAt: number;
}

/** A {@link WireGroup} as it crosses. */
export interface PackedGroup extends Pick<WireGroup, 'provers' | 'giveUpAt'> {
  /** For each change, the numbers of its operations and entries, and 1 if it grows. */
  readonly counts: readonly number[];
  /** The ceilings of the few changes that have any. */
  readonly ceilings: readonly (readonly [place: number, FlatChange['ceilings']])[];
  readonly operations: PackedOperations;
  /** Those of the changes, then the notes. */
  readonly entries: PackedEntries;
}

interface PackedOperations {
  /** For each operation its table, its action and its values; undefined in the place of bytes. */
  readonly values: readonly (SqlValue | undefined)[];
  /** All values that are bytes. Copied: what they were cut from may hold plaintexts, and all of it would be posted. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly lengths: readonly number[];
}

interface PackedEntries {
  readonly tenants: readonly TenantId[];
  readonly times: readonly Instant[];
  /** One in each line: no text of an entry has a line break. */
  readonly texts: string;
  /** One in each line. */
  readonly terms: string;
}

export function packGroup({ changes, notes, provers, giveUpAt }: WireGroup): PackedGroup {
  return {
    counts: changes.flatMap(({ operations, entries, grows }) => [
      operations.length,
      entries.length,
      Number(grows),
    ]),
    ceilings: changes.flatMap(({ ceilings }, place) =>
      ceilings.length > 0 ? [[place, ceilings] as const] : [],
    ),
    operations: packOperations(changes.flatMap(({ operations }) => operations)),
    entries: packEntries(changes.flatMap(({ entries }) => entries).concat(notes)),
    provers,
    giveUpAt,
  };
}

export function unpackGroup({ counts, provers, giveUpAt, ...packed }: PackedGroup): WireGroup {
  const takeOperation = operationsIn(packed.operations);
  const entries = unpackEntries(packed.entries);
  const changes: FlatChange[] = [];
  let noted = 0;
  const ceilings = new Map(packed.ceilings);
  for (let at = 0; at < counts.length; at += 3) {
    const [operationCount = 0, entryCount = 0, grows] = counts.slice(at, at + 3);
    const operations: RowOperation[] = [];
    while (operations.length < operationCount) operations.push(takeOperation());
    changes.push({
      operations,
      entries: entries.slice(noted, noted + entryCount),
      provers: [],
      ceilings: ceilings.get(changes.length) ?? [],
      grows: grows === 1,
    });
    noted += entryCount;
  }
  return { changes, notes: entries.slice(noted), provers, giveUpAt };
}

function packOperations(operations: readonly RowOperation[]): PackedOperations {
  const values: (SqlValue | undefined)[] = [];
  const parts: Uint8Array[] = [];
  for (const { table, action, values: own } of operations) {
    values.push(table, action);
    for (const value of own) {
      const isBytes = value instanceof Uint8Array;
      if (isBytes) parts.push(value);
      values.push(isBytes ? undefined : value);
    }
  }
  return { values, bytes: joined(parts), lengths: parts.map(({ byteLength }) => byteLength) };
}

/** In memory of its own, which `Buffer.concat` does not promise. */
function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}

/** Gives the next operation each time it is called. */
function operationsIn({ values, bytes, lengths }: PackedOperations): () => RowOperation {
  let [at, byteAt, part] = [0, 0, 0];

  function takeBytes(): Uint8Array {
    const from = byteAt;
    byteAt += lengths[part++] ?? 0;
    return bytes.subarray(from, byteAt);
  }

  return () => {
    const table = values[at] as Table;
    const action = values[at + 1] as RowOperation['action'];
    const end = at + 2 + columnsOf(table, action).length;
    const own = values
      .slice(at + 2, end)
      .map((value) => (value === undefined ? takeBytes() : value));
    at = end;
    return { table, action, values: own };
  };
}

function packEntries(entries: readonly WrittenEntry[]): PackedEntries {
  return {
    tenants: entries.map(({ tenant_id }) => tenant_id),
    times: entries.map(({ created_at }) => created_at),
    texts: entries.map(({ text }) => text).join('\n'),
    terms: entries.map(({ terms }) => terms).join('\n'),
  };
}

function unpackEntries({ tenants, times, ...packed }: PackedEntries): WrittenEntry[] {
  const [texts, terms] = [packed.texts.split('\n'), packed.terms.split('\n')];
  return tenants.map((tenant_id, at) => {
    const created_at = times[at];
    assert(created_at !== undefined, 'every entry has its time');
    return { tenant_id, created_at, text: texts[at] ?? '', terms: terms[at] ?? '' };
  });
}
