/** A vault moves to either engine with everything that it holds, or stays as it is and says why. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertSameVault, filledVault, rowsIn } from '../support/backups.ts';
import { emptyPlace } from '../support/copy-places.ts';
import { type EngineName, engineOf, onBothEngines, type Place } from '../support/engines.ts';
import { signInPerson, useCode } from '../support/people.ts';
import { nextLook } from '../support/poll.ts';
import { sharedPostgres } from '../support/postgres.ts';
import { beginCommand, environmentOf, runCommand, spawnVault } from '../support/process.ts';
import { casesOf, seeded } from '../support/random.ts';
import { freePort } from '../support/temporary.ts';
import { createApplication, managementKey, request } from '../support/vault.ts';

const names: readonly EngineName[] = ['sqlite', 'postgres'];

const addressOf = ({ databaseUrl, dataDir }: Place): string => databaseUrl ?? dataDir;

const copying = (from: Place, to: Place): string[] => [
  ...['database', 'copy', '--from', addressOf(from), '--to', addressOf(to)],
  '--json',
];

for (const from of names) {
  test(`a vault on ${from} is copied to both engines, and goes on there`, async (t) => {
    const vault = await filledVault(t, from);
    const before = await rowsIn(vault.engine, vault.place);
    for (const to of names) {
      const engine = engineOf(to);
      const place = await emptyPlace(t, engine);
      const copied = await runCommand(copying(vault.place, place), vault.rootKey);
      assert.equal(copied.code, 0, copied.stderr);
      const { tables } = JSON.parse(copied.stdout);
      assert.ok(tables.tokens.rows > 30);
      assert.deepEqual(await rowsIn(vault.engine, vault.place), before, 'the source is as it was');
      assert.ok(!existsSync(join(place.dataDir, 'copy')), 'nothing intermediate is left');
      await assertSameVault(t, vault, { engine, place, before });
    }
  });
}

onBothEngines('a copy', (engine) => {
  test('is refused while a server runs on the vault, or where the place is taken', async (t) => {
    const vault = await filledVault(t, engine.name);
    const other = await filledVault(t, 'sqlite');
    const taken = await rowsIn(other.engine, other.place);
    const refused = await runCommand(copying(vault.place, other.place), vault.rootKey);
    assert.deepEqual([refused.code, refused.stdout], [1, '']);
    assert.match(refused.stderr, /not empty/);
    assert.deepEqual(await rowsIn(other.engine, other.place), taken);
    const place = await engineOf('sqlite').place(t);
    await spawnVault(t, environmentOf(vault.place, vault.rootKey));
    const served = await runCommand(copying(vault.place, place), vault.rootKey);
    assert.equal(served.code, 1);
    assert.match(served.stderr, /Stop (?:it|all servers) first/);
    assert.ok(!existsSync(place.dataDir) || readdirSync(place.dataDir).length === 0);
  });

  test('is refused where the vault is not intact, and with another root key', async (t) => {
    const vault = await filledVault(t, engine.name);
    const place = await emptyPlace(t, engine);
    const key = { STRONGROOM_ROOT_KEY: Buffer.alloc(32, 1).toString('base64') };
    const foreign = await runCommand(copying(vault.place, place), key);
    assert.equal(foreign.code, 1);
    assert.match(foreign.stderr, /root key/);
    await engine.run(vault.place, "update tokens set type = 'card' where type = 'token'");
    const altered = await runCommand(copying(vault.place, place), vault.rootKey);
    assert.equal(altered.code, 1);
    assert.match(altered.stderr, /not intact/);
  });

  test('that is killed at any moment is made by the same command again', async (t) => {
    const below = seeded(t);
    const vault = await filledVault(t, 'sqlite');
    const before = await rowsIn(vault.engine, vault.place);
    for (let index = 0; index < casesOf({ all: 4, drawn: 1 }); index++) {
      const place = await emptyPlace(t, engine);
      const command = beginCommand(t, copying(vault.place, place), vault.rootKey);
      const until = performance.now() + below(killedWithinMs);
      while (performance.now() < until) await nextLook();
      await command.kill();
      const again = await runCommand(copying(vault.place, place), vault.rootKey);
      if (again.code !== 0) assert.match(again.stderr, /not empty/, 'the killed one had finished');
      const after = new Set(await rowsIn(engine, place));
      assert.deepEqual(
        before.filter((row) => !after.has(row)),
        [],
      );
    }
  });
});

test('a place that is no URL of PostgreSQL and no directory is refused', async (t) => {
  const { dataDir } = await engineOf('sqlite').place(t);
  await runCommand(['database', 'migrate'], environmentOf({ databaseUrl: undefined, dataDir }));
  for (const [url, form] of [
    ['mysql://127.0.0.1/vault', /--to must begin with postgres:/],
    ['http://127.0.0.1/vault', /--to must begin with postgres:/],
    ['postgres://127.0.0.1:65536/vault', /--to must have ports from 1 to 65535/],
  ] as const) {
    const { code, stderr } = await runCommand(
      ['database', 'copy', '--from', dataDir, '--to', url],
      {},
    );
    assert.equal(code, 1);
    assert.match(stderr, form);
  }
  const file = join(dataDir, 'strongroom.db');
  for (const [from, to] of [
    [dataDir, file],
    [file, `${dataDir}/other`],
  ] as const) {
    for (const flags of [[], ['--live'], ['--tenant', 'default']]) {
      const words = ['database', 'copy', ...flags, '--from', from, '--to', to];
      const { code, stderr } = await runCommand(words, {});
      assert.equal(code, 2);
      assert.match(
        stderr,
        new RegExp(`: ${to === file ? '--to' : '--from'} names a file, and has`),
      );
    }
  }
  assert.deepEqual(
    ['mysql:', 'http:'].filter((directory) => existsSync(directory)),
    [],
  );
});

test('a URL that leads to no database is said by its option, whichever it is', async (t) => {
  const { dataDir } = await engineOf('sqlite').place(t);
  const { url } = await sharedPostgres();
  const missing = Object.assign(new URL(url), { pathname: 'missing' }).href;
  const silent = `postgres://127.0.0.1:${await freePort()}/vault`;
  const options = ['--from', '--to'] as const;
  for (const [wrong, reason] of [
    [silent, (option: string) => `the database cannot be reached: .*; check ${option}, and`],
    [missing, (option: string) => `database "missing" does not exist; check ${option}$`],
  ] as const) {
    for (const option of options) {
      const places = options.flatMap((one) => [one, one === option ? wrong : dataDir]);
      const { code, stderr } = await runCommand(['database', 'copy', ...places], {});
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(reason(option), 'm'));
    }
  }
  assert.deepEqual(existsSync(dataDir) ? readdirSync(dataDir) : [], []);
});

test('a user of the database who may create nothing is said in words, and nothing is written', async (t) => {
  const engine = engineOf('postgres');
  const target = await emptyPlace(t, engine);
  const role = `reader_${randomUUID().slice(0, 8)}`;
  await engine.run(target, `create role ${role} login`);
  t.after(() => engine.run(target, `drop role ${role}`));
  await engine.run(target, 'revoke create on schema public from public');
  const limited = Object.assign(new URL(target.databaseUrl ?? ''), { username: role }).href;
  const { dataDir } = await engineOf('sqlite').place(t);
  const embedded = environmentOf({ databaseUrl: undefined, dataDir });
  await runCommand(['database', 'migrate'], embedded);
  for (const [words, environment] of [
    [['database', 'copy', '--from', dataDir, '--to', limited], embedded],
    [['database', 'migrate'], environmentOf({ ...target, databaseUrl: limited })],
  ] as const) {
    const { code, stderr } = await runCommand([...words], environment);
    assert.equal(code, 1);
    assert.match(stderr, /: permission denied for schema public; grant that right to the user/);
  }
});

test('a database without a vault is said by its name, and nothing is written', async (t) => {
  const { databaseUrl: empty = '' } = await emptyPlace(t, engineOf('postgres'));
  const name = new URL(empty).pathname.slice(1);
  const { dataDir } = await engineOf('sqlite').place(t);
  for (const flags of [[], ['--live'], ['--tenant', 'acme'], ['--tenant', 'acme', '--live']]) {
    const words = ['database', 'copy', ...flags, '--from', empty, '--to', dataDir];
    const { code, stderr } = await runCommand(words, {});
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`There is no vault in the database ${name}\\.$`, 'm'));
  }
  assert.deepEqual(existsSync(dataDir) ? readdirSync(dataDir) : [], []);
});

test('a copy without sessions ends each of them, with its entry', async (t) => {
  const vault = await filledVault(t, 'sqlite');
  const served = await spawnVault(t, environmentOf(vault.place, vault.rootKey));
  const key = await createApplication(served.url, {
    type: 'public',
    permissions: ['token:create'],
  });
  const { status, body } = await request(`${served.url}/sessions`, 'POST', { key });
  assert.equal(status, 201);
  const own = { key: await createApplication(served.url, { permissions: ['token:read'] }) };
  const role = (await request(`${served.url}/applications/key`, 'GET', own)).body.id;
  const person = await signInPerson(served.url, managementKey, { applications: [role] });
  const path = `/people/${person.id}/links`;
  const link = await request(`${served.url}${path}`, 'POST', { key: managementKey });
  served.terminate();
  await served.finished;
  const place = await engineOf('sqlite').place(t);
  const words = [...copying(vault.place, place), '--without-sessions'];
  const copied = await runCommand(words, vault.rootKey);
  assert.equal(copied.code, 0, copied.stderr);
  assert.equal(JSON.parse(copied.stdout).ended_sessions, 2);
  const environment = environmentOf(place, vault.rootKey);
  const verified = await runCommand(['logs', 'verify', '--state'], environment);
  assert.equal(verified.code, 0, verified.stdout + verified.stderr);
  const running = await spawnVault(t, environment);
  const late = await request(`${running.url}/v2/tokens`, 'GET', { key: body.session_key });
  assert.equal(late.status, 401);
  const asPerson = { headers: person.headersAs(role) };
  assert.equal((await request(`${running.url}/tokens`, 'GET', asPerson)).status, 401);
  assert.equal((await useCode(running.url, link.body.code)).status, 401);
});

/** About as long as a copy takes. */
const killedWithinMs = 2_500;
