/** All that a store holds, read outside the vault, and the proof that its log is whole. */
import assert from 'node:assert/strict';
import { entryHash, streamSeed } from '../../src/lib/log-chain/entries.ts';
import { readRows, tenantNumber } from '../../src/store/stored-form.ts';
import { type Row, shapes, type Table } from '../../src/store/tables.ts';
import type { Engine, Place } from './engines.ts';

/** The rows of a table in the order of its key. */
export async function rowsOf<T extends Table>(
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
  const own = (line: string) => !/^checkpoints |"entity_type":"log_checkpoint"/.test(line);
  const without = (lines: readonly string[], others: readonly string[]) => {
    const known = new Set(others);
    return lines.filter((line) => own(line) && !known.has(line));
  };
  assert.deepEqual({ came: without(after, before), went: without(before, after) }, unchanged);
}

const unchanged = { came: [], went: [] };

/** Fails unless each stream of the log begins at its seed and runs on without a gap. */
export async function verifyLog(engine: Engine, place: Place): Promise<Row<'logs'>[]> {
  const rows = await rowsOf(engine, place, 'logs');
  const heads = new Map<string, { seq: number; hash: string }>();
  for (const row of rows) {
    const stream = `${row.tenant_id} ${row.stream_id}`;
    const head = heads.get(stream) ?? { seq: 0, hash: streamSeed(row.tenant_id, row.stream_id) };
    assert.equal(row.seq, head.seq + 1, `the log has a gap in ${stream}`);
    assert.equal(row.hash, entryHash(head.hash, row), `entry ${row.seq} of ${stream}`);
    heads.set(stream, row);
  }
  return rows;
}

function bytesAsHex(this: Record<string, unknown>, key: string, value: unknown): unknown {
  const given = this[key];
  return given instanceof Uint8Array ? Buffer.from(given).toString('hex') : value;
}
