/** Who writes to the database, and has no root key, adds no entry to the log that explains what they did. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { StateFinding } from '../../src/audit/state-walk.ts';
import { openBlock } from '../../src/store/log-chain/block.ts';
import {
  type ChainedEntry,
  entryHash,
  type StatedEntry,
  textOf,
} from '../../src/store/log-chain/entries.ts';
import type { Row } from '../../src/store/tables.ts';
import { editEntry, forgedBlocks, keyOf } from '../support/blocks.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { storedRows } from '../support/rows.ts';
import { having, insertion } from '../support/sql.ts';
import { newTenant, type TestTenant, untilUsed } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

type Table = 'tokens' | 'logs';

async function insert<T extends Table>(engine: Engine, tenant: TestTenant, table: T, row: Row<T>) {
  await engine.run(tenant.vault.place, insertion(engine, table, row));
}

/** A stream of its own, whose chain is right: no key is needed for that. */
async function addEntries(
  engine: Engine,
  tenant: TestTenant,
  entries: readonly StatedEntry[],
): Promise<void> {
  const blocks = forgedBlocks(randomUUID(), entries);
  for (const block of blocks) await insert(engine, tenant, 'logs', block);
}

async function tokenOf(tenant: TestTenant, id: string): Promise<Row<'tokens'>> {
  const row = (await tenant.rows('tokens')).find(({ token_id }) => token_id === id);
  assert.ok(row);
  return row;
}

async function entryOf(tenant: TestTenant, id: string, operation: string): Promise<ChainedEntry> {
  const entries = await tenant.rows('logs');
  const entry = entries.find((one) => one.entity_id === id && one.operation === operation);
  assert.ok(entry);
  return entry;
}

onBothEngines('an entry that was added outside the vault', (engine) => {
  test('explains no row that was put back, planted or removed, and is named itself', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    for (const id of ['moved', 'deleted', 'lost']) {
      await tenant.token({ id, type: 'token', data: id });
    }
    const [older, deleted] = [await tokenOf(tenant, 'moved'), await tokenOf(tenant, 'deleted')];
    await tenant.send('PATCH', '/tokens/moved', { body: { containers: ['/moved/'] } });
    await tenant.send('DELETE', '/tokens/deleted');
    for (const id of ['moved', 'lost']) {
      await engine.run(
        vault.place,
        `delete from tokens where ${having(engine, 'tokens', { tenant_id: tenant.id, token_id: id })}`,
      );
    }
    await insert(engine, tenant, 'tokens', older);
    await insert(engine, tenant, 'tokens', deleted);

    const created = await entryOf(tenant, 'moved', 'create');
    const removal = { ...created, operation: 'delete', message: 'Token deleted' };
    const later = { created_at: vault.clock.now() };
    await addEntries(engine, tenant, [
      { ...removal, ...later, state: '-2' },
      { ...created, ...later },
      await entryOf(tenant, 'deleted', 'create'),
      { ...removal, ...later, entity_id: 'lost', state: '-1' },
    ]);
    await runJob(vault, 'sign log checkpoints');

    const { stdout, code } = await runCommand(
      ['logs', 'verify', '--state', '--json'],
      environmentOf(vault.place),
    );
    const findings: readonly { kind: string; id: string }[] = JSON.parse(stdout).findings;
    assert.equal(code, 3);
    assert.deepEqual(findings.map(({ kind, id }) => `${kind} ${id}`).toSorted(), [
      'forged deleted',
      'forged lost',
      'forged moved',
      'forged moved',
      'missing lost',
      'restored deleted',
      'restored moved',
    ]);
  });

  test('is named also where the vault wrote it, and only who did it was changed', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'own', type: 'token', data: 1 });
    const created = await entryOf(tenant, 'own', 'create');
    await addEntries(engine, tenant, [{ ...created, actor_id: randomUUID() }]);
    const { stdout, code } = await runCommand(
      ['logs', 'verify', '--state', '--json'],
      environmentOf(vault.place),
    );
    assert.equal(code, 3);
    const findings: readonly { kind: string; id: string }[] = JSON.parse(stdout).findings;
    assert.deepEqual(
      findings.map(({ kind, id }) => `${kind} ${id}`),
      ['forged own'],
    );
  });

  test('is named also in a block that the vault wrote, and no other block is then doubted', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'first', type: 'token', data: 1 });
    await untilUsed(tenant, tenant.key);
    for (const id of ['before', 'edited', 'after']) {
      await tenant.token({ id, type: 'token', data: 1 });
    }
    const blocks = await storedRows(engine, vault.place, 'logs');
    const blockOf = (id: string) => {
      const found = blocks.find((block) => openBlock(block)?.some((one) => one.entity_id === id));
      assert.ok(found);
      return found;
    };
    const [before, edited] = [blockOf('before'), blockOf('edited')];
    const seq = openBlock(edited)?.find(({ entity_id }) => entity_id === 'edited')?.seq ?? 0;
    await editEntry(engine, vault.place, edited, { seq, change: { actor_id: randomUUID() } });
    await engine.run(vault.place, `delete from logs where ${keyOf(before)}`);
    const { stdout, code } = await runCommand(
      ['logs', 'verify', '--state', '--json'],
      environmentOf(vault.place),
    );
    assert.equal(code, 3);
    const findings: readonly { kind: string; id?: string }[] = JSON.parse(stdout).findings;
    const about = findings
      .filter(({ id }) => id !== undefined)
      .map(({ kind, id }) => `${kind} ${id}`);
    assert.deepEqual(about.toSorted(), ['forged edited', 'inserted before', 'inserted edited']);
  });

  test('or edited is named where it is about no row, though the chain is right and no checkpoint knows', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'read', type: 'token', data: 1 });
    await untilUsed(tenant, tenant.key);
    /** The last entry of its stream. On a busy machine others may share its block. */
    const lastRead = async () => {
      await tenant.send('GET', '/tokens/read');
      const entries = await tenant.rows('logs');
      const read = entries
        .filter(({ operation }) => operation === 'read')
        .reduce((one, other) => (other.seq > one.seq ? other : one));
      const ofStream = ({ stream_id }: { readonly stream_id: string }) =>
        stream_id === read.stream_id;
      const before = entries.find((one) => ofStream(one) && one.seq === read.seq - 1);
      const blocks = (await storedRows(engine, vault.place, 'logs')).filter(ofStream);
      const last = blocks.find(({ last_seq }) => last_seq === read.seq);
      const isLast = blocks.every(({ last_seq }) => last_seq <= read.seq);
      return before && isLast && last?.first_seq === read.seq ? { read, before, last } : undefined;
    };
    let found = await lastRead();
    for (let tries = 0; found === undefined && tries < 50; tries += 1) found = await lastRead();
    assert.ok(found);
    const { read, before, last } = found;
    const verify = async () => {
      const command = ['logs', 'verify', '--state', '--json'];
      const { stdout } = await runCommand(command, environmentOf(vault.place));
      const findings: readonly StateFinding[] = JSON.parse(stdout).findings;
      return findings.map(({ kind, entity_type, id, seq }) => [kind, entity_type, id, seq]);
    };
    assert.deepEqual(await verify(), []);

    // It has no search term, so that those of the block still fit.
    const change = { message: 'Token read by nobody' };
    await editEntry(engine, vault.place, last, { seq: read.seq, change });
    const hash = entryHash(before.hash, read.seq, textOf({ ...read, ...change }, null));
    await engine.run(vault.place, `update logs set hash = '${hash}' where ${keyOf(last)}`);
    const stream = randomUUID();
    for (const block of forgedBlocks(stream, [{ ...read, created_at: vault.clock.now() }])) {
      await insert(engine, tenant, 'logs', block);
    }
    assert.deepEqual(
      (await verify()).toSorted(),
      [
        ['forged', 'log', read.stream_id, read.seq],
        ['forged', 'log', stream, 1],
      ].toSorted(),
    );
  });

  test('does not make a tenant one that the vault deleted, whose rows nobody asks for', async (t) => {
    const vault = await startVault(t, engine);
    const [tenant, gone] = [await newTenant(vault), await newTenant(vault)];
    await tenant.token({ id: 'hidden', type: 'token', data: 1 });
    const verify = async () => {
      const command = ['logs', 'verify', '--state', '--json'];
      const { stdout } = await runCommand(command, environmentOf(vault.place));
      const findings: readonly StateFinding[] = JSON.parse(stdout).findings;
      return findings.map(({ kind, id }) => [kind, id]);
    };
    await gone.send('DELETE', '/tenants/self', { key: gone.managementKey });
    assert.deepEqual(await verify(), []);

    const deletion = await entryOf(gone, gone.id, 'delete');
    const [tombstone] = await gone.rows('tenants');
    const [row] = await tenant.rows('tenants');
    assert.ok(row && tombstone);
    const forged = { ...deletion, tenant_id: tenant.id, entity_id: tenant.id };
    await addEntries(engine, tenant, [{ ...forged, state: `-${row.version}` }]);
    const where = `where tenant_id = '${tenant.id}'`;
    for (const proof of ['', tombstone.proof]) {
      const marked = `deleted_at = 5, version = ${row.version + 1}, proof = '${proof}'`;
      await engine.run(vault.place, `update tenants set ${marked} ${where}`);
      assert.deepEqual(await verify(), [['edited', tenant.id]]);
    }
    await engine.run(vault.place, `delete from tenants ${where}`);
    assert.deepEqual(await verify(), [['missing', tenant.id]]);
    // As if the entries about it were so old that they are gone.
    const blocks = (await storedRows(engine, vault.place, 'logs')).filter((block) =>
      openBlock(block)?.some((one) => one.entity_id === tenant.id),
    );
    assert.ok(blocks.length > 0);
    for (const block of blocks) {
      await engine.run(vault.place, `delete from logs where ${keyOf(block)}`);
    }
    assert.ok((await verify()).some(([kind, id]) => kind === 'missing' && id === tenant.id));
  });
});
