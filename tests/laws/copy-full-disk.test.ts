/** A copy to a disk that gets full says so, changes nothing in the vault, and goes on once there is room. */
import assert from 'node:assert/strict';
import { chownSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { newRootKey } from '../support/backups.ts';
import { execute, notOnCitus } from '../support/citus-cluster.ts';
import { engineOf, type Place } from '../support/engines.ts';
import { startPostgres } from '../support/postgres.ts';
import { environmentOf, runCommand, runProcess, spawnVault } from '../support/process.ts';
import { freeOn, smallDisk } from '../support/small-disk.ts';
import { createApplication, managementKey, request } from '../support/vault.ts';

const addressOf = ({ databaseUrl, dataDir }: Place): string => databaseUrl ?? dataDir;

/** Empty places whose data are on the disk. */
const placeOn = {
  sqlite: async (_t: TestContext, disk: string): Promise<Place> => ({
    databaseUrl: undefined,
    dataDir: join(disk, 'data'),
  }),
  postgres: async (t: TestContext, disk: string): Promise<Place> => {
    const space = join(disk, 'space');
    mkdirSync(space);
    if (process.getuid?.() === 0) chownSync(space, 65_534, 65_534);
    const server = await startPostgres();
    t.after(() => server.stop());
    const databaseUrl = await server.createDatabase();
    await execute(server.url, `create tablespace small location '${space}'`);
    const name = new URL(databaseUrl).pathname.slice(1);
    await execute(server.url, `alter database ${name} set tablespace small`);
    return { databaseUrl, dataDir: join(disk, 'none') };
  },
} as const;

/** More than the room that is left at first. */
const tokens = 30;
const tokenCharacters = 300_000;
const roomAtFirst = 3 * 2 ** 20;

async function createTokens(url: string, key: string): Promise<void> {
  for (let number = 0; number < tokens; number++) {
    const data = `${number} `.padEnd(tokenCharacters, 'x');
    const made = await request(`${url}/tokens`, 'POST', { key, body: { type: 'token', data } });
    assert.equal(made.status, 201, made.text);
  }
}

for (const to of ['sqlite', 'postgres'] as const) {
  const skip = notOnCitus('a database that has sessions of Citus cannot be moved');
  test(`a copy to ${to} on a disk that gets full says so, and goes on when there is room`, {
    skip,
  }, async (t) => {
    const disk = smallDisk(t, 128);
    if (disk === undefined) return t.diagnostic('nobody may mount a small disk here: not tested');
    const rootKey = newRootKey();
    const from = await engineOf('sqlite').place(t);
    const served = await spawnVault(t, environmentOf(from, rootKey));
    const key = await createApplication(served.url);
    await createTokens(served.url, key);
    const place = await placeOn[to](t, disk);
    const filler = join(disk, 'filler');
    writeFileSync(filler, Buffer.alloc(freeOn(disk) - roomAtFirst));
    const words = ['database', 'copy', '--live', '--json', '--from', addressOf(from)];
    words.push('--to', addressOf(place));
    const full = await runCommand(words, rootKey);
    assert.equal(full.code, 1, full.stdout);
    assert.match(full.stderr, /The disk of \S+ is full\. .*run the same command again/);
    const list = () => request(`${served.url}/v2/tokens?size=1`, 'GET', { key });
    assert.equal((await list()).status, 200, 'the vault is served as before');
    const refused = await runProcess(['serve'], environmentOf(place, rootKey));
    assert.notEqual(refused.code, 0);
    assert.match(refused.stdout + refused.stderr, /did not finish|No space left|is full/);
    if (place.databaseUrl !== undefined) {
      const doctor = await runCommand(['doctor'], environmentOf(place, rootKey));
      assert.match(doctor.stdout, /did not finish.*\n +Until then, no server starts here\./);
    }

    truncateSync(filler);
    const again = await runCommand(words, rootKey);
    assert.equal(again.code, 0, again.stderr);
    const { tables, resumed } = JSON.parse(again.stdout);
    assert.equal(tables.tokens.rows, tokens);
    assert.equal(resumed, true);
    assert.equal((await list()).status, 503);
    const target = await spawnVault(t, environmentOf(place, rootKey));
    const { status } = await request(`${target.url}/v2/tokens?size=1`, 'GET', { key });
    assert.equal(status, 200);
  });
}

/** Less than the tokens take, besides what servers leave free and what one page of rows can take. */
const roomOfTenant = 42 * 2 ** 20;

test('a tenant that moves leaves the servers of its new vault their room, and can be given up', async (t) => {
  const disk = smallDisk(t, 128);
  if (disk === undefined) return t.diagnostic('nobody may mount a small disk here: not tested');
  const engine = engineOf('sqlite');
  const start = async (place: Place, tenant: string) => {
    const manager = `${managementKey}.${tenant}`;
    const names = { STRONGROOM_BOOTSTRAP_TENANT: tenant, STRONGROOM_BOOTSTRAP_KEY: manager };
    const rootKey = newRootKey();
    const { url } = await spawnVault(t, environmentOf(place, rootKey, names));
    return { place, rootKey, url, key: await createApplication(url, {}, manager) };
  };
  const from = await start(await engine.place(t), 'moves');
  const to = await start(await placeOn.sqlite(t, disk), 'stays');
  await createTokens(from.url, from.key);
  const { body: token } = await request(`${to.url}/tokens`, 'POST', {
    key: to.key,
    body: { type: 'token', data: 'of the other tenant' },
  });
  const filler = join(disk, 'filler');
  writeFileSync(filler, Buffer.alloc(freeOn(disk) - roomOfTenant));
  const file = join(disk, 'to.env');
  writeFileSync(file, `STRONGROOM_ROOT_KEY=${to.rootKey['STRONGROOM_ROOT_KEY']}\n`);
  const copy = (...flags: readonly string[]) => {
    const places = ['--from', from.place.dataDir, '--to', to.place.dataDir, '--to-env', file];
    const words = ['database', 'copy', '--tenant', 'moves', '--json', ...places, ...flags];
    return runCommand(words, from.rootKey);
  };
  const full = await copy('--live');
  assert.equal(full.code, 1, full.stdout);
  assert.match(full.stderr, /The disk of \S+ is nearly full\. .*run the same command again/);
  const read = await request(`${to.url}/tokens/${token.id}`, 'GET', { key: to.key });
  assert.equal(read.status, 200, 'reading needs room for its entry in the log');

  await engine.run(
    to.place,
    `create trigger held before delete on applications begin select raise(abort, 'held'); end`,
  );
  assert.equal((await copy('--abandon')).code, 1, 'it removed the tokens, and then it was held');
  await engine.run(to.place, 'drop trigger held');
  truncateSync(filler);
  const again = await copy('--live');
  assert.equal(again.code, 0, again.stderr);
  const { tables, resumed } = JSON.parse(again.stdout);
  assert.deepEqual([tables.tokens.rows, resumed], [tokens, false]);
  const listed = await request(`${to.url}/v2/tokens?size=1`, 'GET', { key: from.key });
  assert.equal(listed.status, 200, listed.text);
});
