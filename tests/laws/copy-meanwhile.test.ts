/** What operators and tenants do while a vault or a tenant moves is done in its new place, once. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { newRootKey } from '../support/backups.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { type EngineName, engineOf, type Place } from '../support/engines.ts';
import { beginHeld } from '../support/held-command.ts';
import { createHistory } from '../support/history.ts';
import { checkHistory } from '../support/history-check.ts';
import { nextLook } from '../support/poll.ts';
import {
  type Environment,
  environmentOf,
  runCommand,
  spawnVault,
  type VaultProcess,
} from '../support/process.ts';
import { seeded } from '../support/random.ts';
import type { Lender } from '../support/temporary.ts';
import { createApplication, request } from '../support/vault.ts';

const skip = notOnCitus('has no triggers on distributed tables');
const addressOf = ({ databaseUrl, dataDir }: Place): string => databaseUrl ?? dataDir;
const elsewhere = { sqlite: 'postgres', postgres: 'sqlite' } as const;
/** Of the database that is copied. The embedded one has one at a time. */
const serversOf = { sqlite: 1, postgres: 2 } as const;

async function json(words: readonly string[], environment: Environment) {
  const { code, stdout, stderr } = await runCommand([...words, '--json'], environment);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

interface Cell {
  readonly place: Place;
  readonly environment: Environment;
  readonly servers: readonly VaultProcess[];
  readonly url: string;
}

async function startCell(t: Lender, name: EngineName): Promise<Cell> {
  const place = await engineOf(name).place(t);
  const environment = environmentOf(place, newRootKey());
  const servers: VaultProcess[] = [];
  while (servers.length < serversOf[name]) servers.push(await spawnVault(t, environment));
  return { place, environment, servers, url: servers.at(-1)?.url ?? '' };
}

interface Tenant {
  readonly id: string;
  readonly manager: string;
  readonly key: string;
  readonly token: string;
}

const body = { type: 'token', data: 'kept', search_indexes: ['{{ data }}'] };

async function createTenant(cell: Cell, name: string): Promise<Tenant> {
  const { id, key: manager } = await json(['tenant', 'create', '--name', name], cell.environment);
  const key = await createApplication(cell.url, {}, manager);
  return { id, manager, key, token: '' };
}

async function createHolder(cell: Cell, name: string): Promise<Tenant> {
  const tenant = await createTenant(cell, name);
  const { key } = tenant;
  const made = await request(`${cell.url}/tokens`, 'POST', { key, body });
  assert.equal(made.status, 201, made.text);
  return { ...tenant, token: made.body.id };
}

const purposes = ['data', 'search'] as const;
const rotations = '/tenants/self/keys/rotations';

async function beginRotations(url: string, { manager: key }: Tenant): Promise<void> {
  for (const purpose of purposes) {
    const begun = await request(url + rotations, 'POST', { key, body: { purpose } });
    assert.equal(begun.status, 202, begun.text);
  }
}

/** They end where the tenant is now, and nothing is under the earlier keys or lost. */
async function assertRotated(url: string, { manager, key, token }: Tenant): Promise<void> {
  const isOver = async () => {
    const { status, body: all } = await request(url + rotations, 'GET', { key: manager });
    assert.equal(status, 200);
    assert.equal(all.length, purposes.length, JSON.stringify(all));
    return all.every(({ state }: { state: string }) => state === 'finished');
  };
  while (!(await isOver())) await nextLook();
  const read = await request(`${url}/tokens/${token}`, 'GET', { key });
  assert.equal(read.body.data, 'kept', read.text);
  const found = await request(`${url}/v2/tokens/search`, 'POST', {
    key,
    body: { query: 'data:kept' },
  });
  assert.deepEqual(
    found.body.data?.map(({ id }: { id: string }) => id),
    [token],
    found.text,
  );
}

async function assertIntact(environment: Environment): Promise<void> {
  const { code, stdout, stderr } = await runCommand(['logs', 'verify', '--state'], environment);
  assert.equal(code, 0, stdout + stderr);
}

const retention = 'cvc_retention';
const set = { [retention]: 30 * 60_000 };
const setQuota = ['--set', `${retention}=30m`];

for (const from of ['sqlite', 'postgres'] as const) {
  test(`rotations, quotas and deletions while a vault on ${from} moves are done in its new place`, {
    skip,
  }, async (t) => {
    const cell = await startCell(t, from);
    const [busy, rotated, limited] = [
      await createTenant(cell, 'busy'),
      await createHolder(cell, 'rotated'),
      await createTenant(cell, 'limited'),
    ];
    const deleted = await createHolder(cell, 'deleted');
    let urls: readonly string[] = cell.servers.map(({ url }) => url);
    let turn = 0;
    const url = () => urls[turn++ % urls.length] ?? '';
    const history = createHistory({ url, key: busy.key, below: seeded(t) });
    const write = async (count: number) => {
      let left = count;
      await history.work(4, () => left-- > 0);
    };
    await write(40);
    const engine = engineOf(elsewhere[from]);
    const place = await engine.place(t);
    const words = ['database', 'copy', '--live', '--json', '--from', addressOf(cell.place)];
    const rootKey = { STRONGROOM_ROOT_KEY: cell.environment['STRONGROOM_ROOT_KEY'] ?? '' };
    const command = beginHeld(
      t,
      'once its rows are copied',
      [...words, '--to', addressOf(place)],
      rootKey,
    );
    await command.held;
    await beginRotations(cell.url, rotated);
    await json(['tenant', 'quota', '--tenant', 'limited', ...setQuota], cell.environment);
    await json(['tenant', 'delete', '--tenant', 'deleted', '--yes'], cell.environment);
    await createTenant(cell, 'created');
    await write(40);
    command.goOn();
    const { code, stderr } = await command.finished;
    assert.equal(code, 0, stderr);
    for (const { url: old, terminate, finished } of cell.servers) {
      const late = await request(`${old}/tokens/${rotated.token}`, 'GET', { key: rotated.key });
      assert.equal(late.status, 503, `each server refuses: ${late.text}`);
      terminate();
      await finished;
    }
    const environment = environmentOf(place, rootKey);
    const target = await spawnVault(t, environment);
    urls = [target.url];
    await assertRotated(target.url, rotated);
    const { quotas } = await json(['tenant', 'quota', '--tenant', limited.id], environment);
    assert.equal(quotas[retention], set[retention]);
    const { stdout: tenants } = await runCommand(['tenant', 'list', '--json'], environment);
    assert.match(tenants, /"name":"created"/);
    assert.doesNotMatch(tenants, /"name":"deleted"/);
    const gone = await request(`${target.url}/tokens/${deleted.token}`, 'GET', deleted);
    assert.equal(gone.status, 401, gone.text);
    await checkHistory(engine, place, history, busy.id);
    await assertIntact(environment);
  });

  test(`rotations and quotas while a tenant of a vault on ${from} moves are done in its new vault`, {
    skip,
  }, async (t) => {
    const [source, target] = [await startCell(t, from), await startCell(t, elsewhere[from])];
    const [moving, deleted] = [
      await createHolder(source, 'moving'),
      await createHolder(source, 'deleted'),
    ];
    const file = `${source.place.dataDir}-target.env`;
    const words = ['database', 'copy', '--live', '--json', '--tenant', 'moving'];
    words.push('--from', addressOf(source.place), '--to', addressOf(target.place));
    words.push('--to-env', file);
    writeFileSync(file, `STRONGROOM_ROOT_KEY=${target.environment['STRONGROOM_ROOT_KEY']}\n`);
    t.after(() => rmSync(file));
    const command = beginHeld(t, 'once changes are noted', words, source.environment);
    await command.held;
    await beginRotations(source.url, moving);
    await json(['tenant', 'quota', '--tenant', 'moving', ...setQuota], source.environment);
    await json(['tenant', 'delete', '--tenant', 'deleted', '--yes'], source.environment);
    command.goOn();
    const { code, stderr } = await command.finished;
    assert.equal(code, 0, stderr);
    for (const { url } of source.servers) {
      const late = await request(`${url}/tokens/${moving.token}`, 'GET', { key: moving.key });
      assert.equal(late.status, 503, `each server refuses: ${late.text}`);
    }
    await assertRotated(target.url, moving);
    const { quotas } = await json(['tenant', 'quota', '--tenant', moving.id], target.environment);
    assert.equal(quotas[retention], set[retention]);
    const gone = await request(`${source.url}/tokens/${deleted.token}`, 'GET', deleted);
    assert.equal(gone.status, 401, gone.text);
    for (const { environment } of [source, target]) await assertIntact(environment);
  });
}
