/** The embedded engine's writer thread: it dies, it cannot come back, it comes back. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { createEpochs } from '../../src/base/epochs.ts';
import type { TenantId } from '../../src/base/ids.ts';
import type { Sealed } from '../../src/keys/envelope.ts';
import { flatten } from '../../src/store/change.ts';
import { monotonicMs } from '../../src/store/commit/queue.ts';
import type { ChainedEntry } from '../../src/store/log-chain/entries.ts';
import { packGroup, unpackGroup } from '../../src/store/sqlite/packed-group.ts';
import { startWriter, type Writer } from '../../src/store/sqlite/thread.ts';
import { creation, token } from '../support/changes.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** Starts a writer and gives the thread that it started. */
async function writerOf(t: TestContext) {
  const dataDir = join(temporaryDirectory(t), 'data');
  const threads: Worker[] = [];
  const record = (thread: Worker) => threads.push(thread);
  process.on('worker', record);
  t.after(() => void process.off('worker', record));
  const entries: ChainedEntry[] = [];
  const writer = await startWriter({
    dataDir,
    newStreamId: randomUUID,
    epochs: createEpochs(),
    onCommitted: (some) => entries.push(...some),
  });
  t.after(() => writer.close());
  const kill = async () => {
    const thread = threads.at(-1);
    assert.ok(thread);
    await Promise.all([once(thread, 'exit'), thread.terminate()]);
  };
  return { writer, dataDir, threads, kill, entries };
}

async function commit(writer: Writer, id: string) {
  const changes = [flatten(creation(token(id)))];
  const [outcome] = await writer.commit({ changes, giveUpAt: monotonicMs() + 5000 });
  return outcome;
}

test('a thread that died is replaced, and the new one begins its own stream of the log', async (t) => {
  const { writer, kill, entries } = await writerOf(t);
  await commit(writer, 'a');
  await kill();
  await commit(writer, 'b');
  await writer.close();
  const [before, after] = entries;
  assert.equal(after?.seq, 1);
  assert.notEqual(after?.stream_id, before?.stream_id);
});

test('while the thread cannot come back, commits fail with unavailable; then it does', async (t) => {
  const { writer, dataDir, kill } = await writerOf(t);
  await commit(writer, 'a');
  await kill();
  renameSync(dataDir, `${dataDir} away`);
  writeFileSync(dataDir, 'no directory');
  for (let attempt = 0; attempt < 3; attempt++) {
    await assert.rejects(commit(writer, 'b'), { name: 'VaultError', code: 'unavailable' });
  }
  rmSync(dataDir);
  renameSync(`${dataDir} away`, dataDir);
  assert.equal((await commit(writer, 'b'))?.unavailable, undefined);
});

test('the error of the first start is reported as it is', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  writeFileSync(dataDir, 'no directory');
  await assert.rejects(
    startWriter({ dataDir, newStreamId: randomUUID, epochs: createEpochs() }),
    (error: Error) => error.name === 'Error' && error.message.includes('EEXIST'),
  );
});

test('a closed writer starts no thread', async (t) => {
  const { writer, threads } = await writerOf(t);
  await writer.close();
  await assert.rejects(commit(writer, 'a'), { code: 'unavailable' });
  await assert.rejects(writer.scrub(), { code: 'unavailable' });
  assert.equal(threads.length, 1);
});

test('a group whose time has run out is not begun', async (t) => {
  const { writer } = await writerOf(t);
  const changes = [flatten(creation(token('a')))];
  const [late] = await writer.commit({ changes, giveUpAt: monotonicMs() - 1 });
  assert.match(late?.unavailable ?? '', /waited too long/);
  assert.equal((await commit(writer, 'a'))?.conflict, undefined);
});

test('nothing crosses to the thread but what is to be stored', () => {
  const pool = Buffer.from(new ArrayBuffer(1000)).fill('plaintext');
  const row = { ...token('one'), data: pool.subarray(10, 110) as Uint8Array as Sealed };
  const packed = packGroup({
    changes: [flatten(creation(row))],
    notes: [],
    provers: [],
    giveUpAt: 0,
  });
  assert.equal(packed.operations.bytes.buffer.byteLength, 100);
});

test('what crosses to the thread arrives as it was', () => {
  const one = flatten(creation(token('one')));
  const [operation] = one.operations;
  const [entry] = one.entries;
  assert.ok(operation && entry);
  const empty = { ...operation, values: operation.values.with(5, new Uint8Array(0)) };
  const elsewhere = { ...entry, tenant_id: 'another' as TenantId, terms: '' };
  const ceiling = { quota: 'token_storage', tenant_id: entry.tenant_id, bytes: 9 } as const;
  const group = {
    changes: [
      one,
      {
        operations: [empty, operation],
        entries: [],
        provers: [],
        ceilings: [ceiling],
        grows: true,
      },
      {
        operations: [operation],
        entries: [entry, elsewhere],
        provers: [],
        ceilings: [],
        grows: false,
      },
    ],
    notes: [elsewhere, entry],
    provers: [],
    giveUpAt: 7,
  };
  const arrived = unpackGroup(structuredClone(packGroup(group)));
  assert.deepEqual(bytesAsText(arrived), bytesAsText(group));
});

/** A buffer and the array that arrives for it are equal where their bytes are. */
function bytesAsText(group: unknown): string {
  return JSON.stringify(group, (_, value: unknown) =>
    value instanceof Uint8Array ? `bytes ${Buffer.from(value).toString('hex')}` : value,
  );
}
