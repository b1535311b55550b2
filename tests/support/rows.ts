/** All that a store holds, read outside the vault, and the proof that its log is whole. */
import assert from 'node:assert/strict';
import type { LogBlock } from '../../src/store/log-chain/block.ts';
import { type ChainedEntry, type ChainHead, seedHead } from '../../src/store/log-chain/entries.ts';
import { follows, headOf, linkOfBlock } from '../../src/store/log-chain/links.ts';
import { readRows, tenantNumber } from '../../src/store/stored-form.ts';
import type { RowFromStore } from '../../src/store/stored-row.ts';
import { type Row, shapes, type Table } from '../../src/store/tables.ts';
import { type Content, entriesOf } from './blocks.ts';
import type { Engine, Place } from './engines.ts';

/** The rows of a table in the order of its key; of the log its entries. */
export async function rowsOf<T extends Table>(
  engine: Engine,
  place: Place,
  table: T,
): Promise<Content<T>[]> {
  const rows = await storedRows(engine, place, table);
  const content = table === 'logs' ? entriesOf(rows as unknown as LogBlock[]) : rows;
  return content as unknown as Content<T>[];
}

/** The rows of a table in the order of its key, as they are stored. */
export async function storedRows<T extends Table>(
  engine: Engine,
  place: Place,
  table: T,
): Promise<Row<T>[]> {
  const rows = await engine.run(
    place,
    `select * from ${table} order by ${shapes[table].key.join(', ')}`,
  );
  for (const { tenant_id } of await engine.run(place, 'select tenant_id from tenants')) {
    tenantNumber(String(tenant_id));
  }
  // The driver of one engine gives 64-bit integers as text.
  const integers = shapes[table].columns.filter(
    (_, index) => shapes[table].kinds[index] === 'integer',
  );
  return readRows(rows).map((row) => ({
    ...row,
    ...Object.fromEntries(
      integers.map((name) => [name, row[name] === null ? null : Number(row[name])]),
    ),
  })) as unknown as Row<T>[];
}

/** Every row of every table, a line each. */
export async function contentOf(engine: Engine, place: Place): Promise<string[]> {
  const lines: string[] = [];
  for (const table of Object.keys(shapes) as Table[]) {
    for (const row of await rowsOf(engine, place, table)) {
      lines.push(`${table} ${JSON.stringify(row, bytesAsHex)}`);
    }
  }
  return lines;
}

/** Fails with the lines that came or went. A running vault signs checkpoints of the log by itself. */
export function assertUnchanged(before: readonly string[], after: readonly string[]): void {
  const own = (line: string) =>
    !/^checkpoints |^due_work .*"work":"checkpoint"|"entity_type":"log_checkpoint"/.test(line);
  const without = (lines: readonly string[], others: readonly string[]) => {
    const known = new Set(others);
    return lines.filter((line) => own(line) && !known.has(line));
  };
  assert.deepEqual({ came: without(after, before), went: without(before, after) }, unchanged);
}

const unchanged = { came: [], went: [] };

/**
 * Fails unless each stream of the log begins at its seed and runs on without a gap.
 * @param tenant whose log it is, where another one has no longer all of its own.
 */
export async function verifyLog(
  engine: Engine,
  place: Place,
  tenant?: string,
): Promise<ChainedEntry[]> {
  const blocks = (await storedRows(engine, place, 'logs')).filter(
    ({ tenant_id }) => tenant === undefined || tenant_id === tenant,
  );
  const heads = new Map<string, ChainHead>();
  for (const block of blocks) {
    const { tenant_id, stream_id, first_seq } = block;
    const stream = `${tenant_id} ${stream_id}`;
    const head = heads.get(stream) ?? seedHead(tenant_id, stream_id);
    assert.equal(first_seq, head.seq + 1, `the log has a gap in ${stream}`);
    const link = linkOfBlock(block);
    assert.ok(follows(head, link), `block ${first_seq} of ${stream}`);
    heads.set(stream, headOf(link));
  }
  return entriesOf(blocks);
}

function bytesAsHex(this: Record<string, unknown>, key: string, value: unknown): unknown {
  const given = this[key];
  return given instanceof Uint8Array ? Buffer.from(given).toString('hex') : value;
}

/** A row as the store returns it. */
export function asStored<T extends Table>(row: Row<T>): RowFromStore<T> {
  return row as unknown as RowFromStore<T>;
}
