/** `strongroom doctor`: each thing that can be wrong is found and comes with its remedy, and nothing changes. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, renameSync, statfsSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeCertificate } from '../support/certificate.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { engineOf, onBothEngines, onPostgres } from '../support/engines.ts';
import { startHost } from '../support/host.ts';
import { startProvider, withoutProvider } from '../support/identity-provider.ts';
import {
  type Environment,
  environmentOf,
  runCommand,
  spawnVault,
  withCode,
} from '../support/process.ts';
import { assertUnchanged, contentOf } from '../support/rows.ts';
import { freePort, temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

interface Finding {
  readonly check: string;
  readonly status: string;
  readonly message: string;
  readonly advice?: string;
}

/** Asks for JSON, and checks what is so of every report. */
async function examine(environment: Environment) {
  const { code, stdout, stderr } = await runCommand(['doctor', '--json'], environment);
  assert.equal(stderr, '');
  const { status, findings } = JSON.parse(stdout) as { status: string; findings: Finding[] };
  const has = (wanted: string) => findings.some((finding) => finding.status === wanted);
  assert.equal(code, has('problem') ? 1 : 0);
  assert.equal(status, has('problem') ? 'problem' : has('warning') ? 'warning' : 'ok');
  for (const finding of findings) assert.equal('advice' in finding, finding.status !== 'ok');
  return (check: string) => findings.filter((finding) => finding.check === check);
}

const statuses = (findings: readonly Finding[]) => findings.map(({ status }) => status);

onBothEngines('doctor', (engine) => {
  test('finds a vault in order, and changes nothing in it', async (t) => {
    const { place, stop } = await startVault(t, engine);
    await stop();
    const before = await contentOf(engine, place);
    const of = await examine(environmentOf(place, withCode));
    for (const check of ['configuration', 'database', 'clock', 'schema', 'files']) {
      assert.deepEqual(statuses(of(check)), ['ok'], `${check}: ${JSON.stringify(of(check))}`);
    }
    for (const check of ['root key', 'keys', 'key rotation', 'backup']) {
      const found = statuses(of(check));
      assert.ok(found.length > 0, check);
      assert.ok(
        found.every((status) => status === 'ok'),
        `${check}: ${JSON.stringify(of(check))}`,
      );
    }
    // The PostgreSQL of the tests runs without it, for the sake of speed.
    const durability =
      engine.name === 'sqlite' ? /^what is acknowledged survives/ : /^fsync is off/;
    assert.equal(of('durability').length, 1);
    assert.match(of('durability')[0]?.message ?? '', durability);
    assertUnchanged(before, await contentOf(engine, place));
  });

  test('says how old keys are, what is under earlier ones, and when the last backup was made', {
    skip: notOnCitus('the vault makes no backups of distributed tables'),
  }, async (t) => {
    const { place, stop } = await startVault(t, engine);
    await stop();
    const environment = environmentOf(place);
    const messages = async (check: string) =>
      (await examine(environment))(check)
        .map(({ message }) => message)
        .join('\n');
    assert.match(await messages('root key'), /in use for 0 days/);
    assert.match(await messages('keys'), /data 0, .*STRONGROOM_KEY_MAX_AGE is 365 days/);
    assert.match(await messages('backup'), /has made none/);
    const directory = join(temporaryDirectory(t), 'backup');
    const made = await runCommand(['backup', directory], environment);
    assert.equal(made.code, 0, made.stderr);
    assert.match(await messages('backup'), /0 days ago\) in .*backup/);
    const rotated = await runCommand(['keys', 'rotate', 'data'], environment);
    assert.equal(rotated.code, 0, rotated.stderr);
    assert.match(await messages('keys'), /0 rows of \d+ tenants? are under earlier data keys/);
    assert.match(await messages('key rotation'), /no rotation/);
  });

  test('finds the root key of another vault, and a missing one', async (t) => {
    const { place, stop } = await startVault(t, engine);
    await stop();
    const other = { STRONGROOM_ROOT_KEY: randomBytes(32).toString('base64') };
    const [foreign] = (await examine(environmentOf(place, withCode, other)))('root key');
    assert.match(foreign?.message ?? '', /opens the keys of no tenant/);
    renameSync(join(place.dataDir, 'root.key'), join(place.dataDir, 'elsewhere'));
    const [missing] = (await examine(environmentOf(place, withCode)))('root key');
    assert.match(missing?.message ?? '', /is missing/);
    assert.match(missing?.advice ?? '', /from its backup/);
    assert.equal(existsSync(join(place.dataDir, 'root.key')), false);
  });

  test('finds a tenant that was altered, and a later schema', async (t) => {
    const { place, stop, running } = await startVault(t, engine);
    const [tenant] = await running.vault.tenants.all();
    await stop();
    const wrong = engine.name === 'sqlite' ? "x'00'" : "'\\x00'";
    await engine.run(place, `update tenants set keyring = ${wrong}`);
    assert.ok(tenant);
    assert.deepEqual(statuses((await examine(environmentOf(place, withCode)))('root key')), [
      'problem',
    ]);
    await engine.run(place, 'update schema_version set version = 99, oldest_server = 99');
    const [schema] = (await examine(environmentOf(place, withCode)))('schema');
    assert.match(schema?.message ?? '', /schema version 99/);
  });

  test('before the first start it finds nothing wrong, and creates nothing', async (t) => {
    const place = await engine.place(t);
    const of = await examine(environmentOf(place, withCode));
    assert.deepEqual(statuses([...of('database'), ...of('root key')]), ['ok', 'ok']);
    assert.match(of('root key')[0]?.message ?? '', /the first start creates/);
    assert.equal(existsSync(join(place.dataDir, 'strongroom.db')), false);
    assert.equal(existsSync(join(place.dataDir, 'root.key')), false);
  });
});

test('it finds every problem of the configuration', async (t) => {
  const of = await examine({
    STRONGROOM_DATA_DIR: temporaryDirectory(t),
    STRONGROOM_PORT: 'x',
    STRONGROOM_TREADS: '2',
  });
  assert.deepEqual(statuses(of('configuration')), ['problem', 'problem']);
  assert.deepEqual(of('database'), []);
});

test('people read a line for each, with the remedy below it', async (t) => {
  const place = await engineOf('sqlite').place(t);
  chmodSync(place.dataDir, 0o777);
  const { code, stdout } = await runCommand(['doctor'], environmentOf(place, withCode));
  assert.equal(code, 1);
  assert.match(stdout, /^ok {7}configuration {2}every variable is known and valid$/m);
  assert.match(
    stdout,
    /^problem {2}files {10}.* has mode 0777: others have access\n {24}chmod 700 /m,
  );
  assert.match(stdout, /^\d+ ok, \d+ warnings?, 1 problem$/m);
});

test('it finds files that others can read, and a database of the future', async (t) => {
  const { place, stop } = await startVault(t, engineOf('sqlite'));
  await stop();
  const file = join(place.dataDir, 'strongroom.db');
  const { certFile, keyFile } = writeCertificate(place.dataDir);
  chmodSync(file, 0o640);
  chmodSync(keyFile, 0o604);
  const tomorrow = new Date(Date.now() + 86_400_000);
  utimesSync(file, tomorrow, tomorrow);
  const of = await examine(
    environmentOf(place, withCode, {
      STRONGROOM_TLS_CERT: certFile,
      STRONGROOM_TLS_KEY: keyFile,
      STRONGROOM_LOG_EXPORT: join(place.dataDir, 'no such directory', 'log'),
    }),
  );
  assert.deepEqual(statuses(of('files')), ['problem', 'problem', 'problem']);
  assert.match(
    of('files')
      .map(({ advice }) => advice)
      .join(),
    /chmod 600 .*strongroom\.db.*tls\.key/,
  );
  assert.deepEqual(statuses(of('clock')), ['problem']);
  assert.deepEqual(statuses(of('certificate')), ['ok']);
});

test('it says how much is free, and below how much requests that store more are refused', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const { bavail, bsize } = statfsSync(place.dataDir);
  const freeMebibytes = Math.floor((bavail * bsize) / 2 ** 20);
  const disk = async (mebibytes: number) => {
    const floor = { STRONGROOM_FREE_SPACE_MIN: `${mebibytes}` };
    const [finding] = (await examine(environmentOf(place, floor)))('disk');
    assert.match(finding?.message ?? '', /^\d+ MiB are free in /);
    assert.match(finding?.message ?? '', new RegExp(`${mebibytes} MiB .STRONGROOM_FREE_SPACE_MIN`));
    return finding;
  };
  assert.match((await disk(1))?.message ?? '', /requests that store more are refused below/);
  const near = await disk(Math.ceil(freeMebibytes * 0.8));
  assert.equal(near?.status, 'warning');
  assert.match(near?.advice ?? '', /Free some space/);
  const below = await disk(999_999_999);
  assert.equal(below?.status, 'problem');
  assert.match(below?.message ?? '', /refused with 507/);
  assert.match(below?.advice ?? '', /Free some space.*Reading and deleting go on/);
});

test('it finds a root key that others can read', async (t) => {
  const { place, stop } = await startVault(t, engineOf('sqlite'));
  await stop();
  chmodSync(join(place.dataDir, 'root.key'), 0o644);
  const [finding] = (await examine(environmentOf(place, withCode)))('root key');
  assert.match(finding?.message ?? '', /mode 0644/);
});

test('it finds a server that runs, a port that is taken and an address of another machine', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const { port } = await startHost(t);
  const taken = (await examine(environmentOf(place, withCode, { STRONGROOM_PORT: `${port}` })))(
    'address',
  );
  assert.deepEqual(statuses(taken), ['problem']);
  const elsewhere = { STRONGROOM_HOST: '192.0.2.1', STRONGROOM_TLS: 'off' };
  const [away] = (await examine(environmentOf(place, withCode, elsewhere)))('address');
  assert.match(away?.message ?? '', /EADDRNOTAVAIL/);
  await spawnVault(t, environmentOf(place, withCode));
  const of = await examine(environmentOf(place, withCode));
  assert.match(of('server')[0]?.message ?? '', /a server is running on the data directory/);
  assert.deepEqual(of('address'), []);
});

test('it says how code of tenants is kept apart, and how to mend what is missing', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const off = environmentOf(place);
  assert.deepEqual(statuses((await examine(off))('code')), ['ok']);
  const [here] = (await examine(environmentOf(place, withCode)))('code');
  const isApart = here?.message.endsWith('namespaces and an empty root') === true;
  const isOther = here?.message.endsWith('namespaces, another user, and an empty root') === true;
  assert.equal(here?.status, isApart || isOther ? 'ok' : 'warning');
  if (here?.status !== 'ok') return;
  // The same machine, where nobody may make namespaces or become another user.
  const script = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"';
  const main = join(import.meta.dirname, '..', '..', 'bin', 'strongroom.js');
  const words = ['-Ur', 'sh', '-c', script, 'sh', process.execPath, main, 'doctor', '--json'];
  const { stdout } = spawnSync('unshare', words, {
    env: { ...process.env, ...environmentOf(place, withCode) },
    encoding: 'utf8',
  });
  const { findings } = JSON.parse(stdout) as { findings: Finding[] };
  const weak = findings.find(({ check }) => check === 'code');
  assert.equal(weak?.status, 'warning', JSON.stringify(weak));
  assert.match(weak?.message ?? '', /limits, but no namespaces$/);
  assert.match(weak?.advice ?? '', /user namespaces.*STRONGROOM_REACTORS=off/);
});

onPostgres(
  'it says what is lost where a managed service hides functions of the server',
  async (t) => {
    const postgres = engineOf('postgres');
    const { place, stop } = await startVault(t, postgres);
    await stop();
    const user = `managed_${randomBytes(4).toString('hex')}`;
    await postgres.run(
      place,
      `revoke execute on function pg_walfile_name(pg_lsn) from public; create role ${user} login;
      grant select on all tables in schema public to ${user}`,
    );
    t.after(() => postgres.run(place, `drop owned by ${user}; drop role ${user}`));
    const url = new URL(place.databaseUrl ?? '');
    const findings = async (hosts: string) => {
      const named = `postgres://${user}@${hosts}${url.pathname}`;
      const of = await examine(environmentOf(place, withCode, { STRONGROOM_DATABASE_URL: named }));
      return of('failover').map(({ status, message }) => `${status}: ${message}`);
    };
    const denied = 'the server does not let this user call pg_walfile_name(): ';
    const late =
      'a promotion is noticed only once the old primary responds as a standby, or after a restart';
    assert.deepEqual(await findings(`${url.host},127.0.0.1:${await freePort()}`), [
      `warning: ${denied}${late}`,
    ]);
    assert.deepEqual(await findings(url.host), [
      `ok: ${denied}nothing is lost with one host; with several, ${late}`,
    ]);
  },
);

test('it finds a database that cannot be reached or read', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const port = await freePort();
  const url = { STRONGROOM_DATABASE_URL: `postgres://user:xyzzy@127.0.0.1:${port}/vault` };
  const [unreached] = (await examine(environmentOf(place, withCode, url)))('database');
  assert.match(unreached?.message ?? '', /ECONNREFUSED/);
  assert.doesNotMatch(JSON.stringify(unreached), /xyzzy/);
  writeFileSync(
    join(place.dataDir, 'strongroom.db'),
    'this is no database, whatever its name says',
  );
  const [broken] = (await examine(environmentOf(place, withCode)))('database');
  assert.equal(broken?.message, 'it cannot be reached: file is not a database');
});

onBothEngines('doctor and the roles of people', (engine) => {
  test('a rule that names what is not there gives nobody anything, and is found', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const own = (await tenant.send('GET', '/applications/key')).body.id;
    await vault.stop();
    const roles = join(temporaryDirectory(t), 'roles.json');
    const other = '2f1f4a6e-6d8a-4b0e-9a51-1f0c3a7f6b11';
    const rules = [
      { tenant: tenant.id, application: own },
      { tenant: tenant.id, application: other },
      { tenant: 'no-such-tenant', application: own },
      { tenant: other, application: own },
    ];
    writeFileSync(roles, JSON.stringify(rules.map((rule) => ({ value: 'support', ...rule }))));
    const of = await examine(
      environmentOf(vault.place, {
        STRONGROOM_PUBLIC_URL: 'https://vault.example.com',
        STRONGROOM_OIDC_ISSUER: 'http://127.0.0.1:1',
        STRONGROOM_OIDC_CLIENT_ID: 'strongroom',
        STRONGROOM_OIDC_ROLES: roles,
      }),
    );
    const found = of('sign-in').filter(({ message }) => message.startsWith('rule '));
    assert.deepEqual(
      found.map(({ status, message }) => [status, message.slice(0, 6)]),
      [
        ['warning', 'rule 2'],
        ['warning', 'rule 3'],
        ['warning', 'rule 4'],
      ],
    );
    assert.match(found[0]?.message ?? '', /an application that the tenant does not have$/);
    assert.match(found[1]?.message ?? '', /a tenant that does not exist$/);
  });
});

test('an identity provider that cannot be reached, or is another one, is found', {
  skip: withoutProvider,
}, async (t) => {
  const directory = temporaryDirectory(t);
  const roles = join(directory, 'roles.json');
  writeFileSync(roles, '[]');
  const { issuer, stop } = await startProvider(t, { publicUrl: 'https://vault.example.com' });
  const environment = (named: string) => ({
    STRONGROOM_DATA_DIR: directory,
    STRONGROOM_PUBLIC_URL: 'https://vault.example.com',
    STRONGROOM_OIDC_ISSUER: named,
    STRONGROOM_OIDC_CLIENT_ID: 'strongroom',
    STRONGROOM_OIDC_ROLES: roles,
  });
  const found = (await examine(environment(issuer)))('sign-in');
  assert.deepEqual(statuses(found), ['warning', 'ok']);
  assert.match(found[0]?.message ?? '', /nobody a role/);
  const other = (await examine(environment(issuer.replace('127.0.0.1', 'localhost'))))('sign-in');
  assert.deepEqual(statuses(other), ['warning', 'problem']);
  await stop();
  const gone = (await examine(environment(issuer)))('sign-in');
  assert.deepEqual(statuses(gone), ['warning', 'problem']);
  assert.match(gone[1]?.message ?? '', /cannot be reached/);
});
