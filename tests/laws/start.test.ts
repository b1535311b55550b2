/** How a vault comes up: where it dares to listen, what the first start makes, and who may help it. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { get } from 'node:https';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { newApiKey } from '../../src/keys/api-key.ts';
import { writeCertificate } from '../support/certificate.ts';
import { type Engine, engineOf, onBothEngines, type Place } from '../support/engines.ts';
import { startHost } from '../support/host.ts';
import {
  type Environment,
  environmentOf,
  runCommand,
  spawnVault,
  untilOutput,
  type VaultProcess,
} from '../support/process.ts';
import { assertUnchanged, contentOf, rowsOf } from '../support/rows.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication, managementKey, request } from '../support/vault.ts';

/** An address that is not loopback and needs no network. */
const everywhere = { STRONGROOM_HOST: '0.0.0.0' };
const noBootstrapKey = { STRONGROOM_BOOTSTRAP_KEY: '' };
const keyFileOf = (file: string) => ({ STRONGROOM_BOOTSTRAP_KEY_FILE: file });
const shownKey = /"msg":"Its management key, shown only once: (key_test_mgt_\w+)"/;

const refusals: readonly { title: string; environment: Environment; says: RegExp }[] = [
  {
    title: 'on another address than loopback without TLS',
    environment: everywhere,
    says: /STRONGROOM_HOST is not a loopback address/,
  },
  {
    title: 'with half of a certificate',
    environment: { STRONGROOM_TLS_CERT: 'tls.crt' },
    says: /STRONGROOM_TLS_CERT and STRONGROOM_TLS_KEY must be given together/,
  },
  {
    title: 'with a certificate that cannot be read',
    environment: { STRONGROOM_TLS_CERT: 'none.crt', STRONGROOM_TLS_KEY: 'none.key' },
    says: /STRONGROOM_TLS_CERT names a file that cannot be read/,
  },
  {
    title: 'with a bootstrap key that is too short',
    environment: { STRONGROOM_BOOTSTRAP_KEY: 'only.thirty.one.characters.long' },
    says: /STRONGROOM_BOOTSTRAP_KEY must have 32 to 200 characters/,
  },
];

for (const { title, environment, says } of refusals) {
  test(`${title} the start is refused, and nothing is made`, async (t) => {
    const place = await engineOf('sqlite').place(t);
    const { code, stdout, stderr } = await runCommand(['serve'], environmentOf(place, environment));
    assert.equal(code, 1, stdout);
    assert.match(stderr, says);
    assert.equal(stderr.includes('only.thirty.one'), false, 'the key is not printed');
    assert.equal(existsSync(join(place.dataDir, 'strongroom.db')), false);
    assert.equal(existsSync(join(place.dataDir, 'root.key')), false);
  });
}

test('STRONGROOM_TLS=off serves plain HTTP on any address, for a proxy in front', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const vault = await spawnVault(t, environmentOf(place, everywhere, { STRONGROOM_TLS: 'off' }));
  const { port } = new URL(vault.url);
  assert.equal((await request(`http://127.0.0.1:${port}/readyz`, 'GET')).status, 200);
});

test('with a certificate it serves HTTPS, and nothing else, on any address', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const { certFile, keyFile, cert } = writeCertificate(place.dataDir);
  const vault = await spawnVault(
    t,
    environmentOf(place, everywhere, {
      STRONGROOM_TLS_CERT: certFile,
      STRONGROOM_TLS_KEY: keyFile,
    }),
  );
  const { protocol, port } = new URL(vault.url);
  assert.equal(protocol, 'https:');
  const status = await new Promise((resolve, reject) => {
    get(`https://127.0.0.1:${port}/readyz`, { ca: cert, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).once('error', reject);
  });
  assert.equal(status, 200);
  await assert.rejects(request(`http://127.0.0.1:${port}/readyz`, 'GET'));
});

onBothEngines('the first start', (engine) => {
  test('shows the management key once; later starts make and show nothing', async (t) => {
    const place = await engine.place(t);
    const first = await spawnVault(t, environmentOf(place, noBootstrapKey));
    const key = shownKey.exec(first.output())?.[1] ?? '';
    await createApplication(first.url, {}, key);
    first.terminate();
    assert.equal((await first.finished).code, 0);
    const before = await contentOf(engine, place);
    const second = await spawnVault(t, environmentOf(place, noBootstrapKey));
    assert.doesNotMatch(second.output(), /key_test|management key|Created/);
    assertUnchanged(before, await contentOf(engine, place));
    await createApplication(second.url, {}, key);
  });

  test('`tenant create` works beside a running server and its key at once', async (t) => {
    const place = await engine.place(t);
    const vault = await spawnVault(t, environmentOf(place));
    assert.doesNotMatch(vault.output(), /management key/, 'the key of the operator is not shown');
    assert.equal(vault.output().includes(managementKey), false);
    const words = ['tenant', 'create', '--name', 'second', '--type', 'test', '--json'];
    const { code, stdout, stderr } = await runCommand(words, environmentOf(place));
    assert.equal(code, 0, stderr);
    const { id, name, type, key } = JSON.parse(stdout);
    assert.deepEqual({ name, type }, { name: 'second', type: 'test' });
    const application = await createApplication(vault.url, {}, key);
    const body = { type: 'token', data: 'of the second tenant' };
    const token = await request(`${vault.url}/tokens`, 'POST', { key: application, body });
    assert.equal(token.body.tenant_id, id);
    const again = await runCommand(words, environmentOf(place));
    assert.equal(again.code, 1);
    assert.match(again.stderr, /A tenant with this name already exists/);
  });
});

onBothEngines('a port that is taken', (engine) => {
  test('stops the first start before anything is made, so that no management key is lost', async (t) => {
    const place = await engine.place(t);
    const taken = await startHost(t);
    const environment = environmentOf(place, noBootstrapKey);
    for (const threads of ['1', '2']) {
      const refused = await runCommand(['serve'], {
        ...environment,
        STRONGROOM_PORT: String(taken.port),
        STRONGROOM_THREADS: threads,
      });
      assert.equal(refused.code, 1, refused.stdout);
      assert.match(refused.stderr, /^strongroom serve: .*127\.0\.0\.1:\d+.*\n$/);
      assert.equal(refused.stdout, '');
    }
    const metrics = { STRONGROOM_METRICS_ADDRESS: taken.name };
    const refused = await runCommand(['serve'], { ...environment, ...metrics });
    assert.equal(refused.code, 1, refused.stdout);
    assert.match(refused.stderr, /^strongroom serve: .*127\.0\.0\.1:\d+.*\n$/);
    assert.equal(existsSync(join(place.dataDir, 'strongroom.db')), false);
    assert.equal(existsSync(join(place.dataDir, 'root.key')), false);
    const vault = await spawnVault(t, environment);
    await createApplication(vault.url, {}, shownKey.exec(vault.output())?.[1]);
  });
});

test('a second server on one embedded data directory is refused, until the first has ended', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const environment = environmentOf(place, { STRONGROOM_THREADS: '2' });
  const first = await spawnVault(t, environment);
  const refused = await runCommand(['serve'], environment);
  assert.equal(refused.code, 1, refused.stdout);
  assert.match(
    refused.stderr,
    /^strongroom serve: Another server is running on the data directory/,
  );
  assert.equal((await runCommand(['tenant', 'list'], environment)).code, 0, 'commands still work');
  await createApplication(first.url);

  await first.kill();
  const second = await spawnVault(t, environment);
  second.terminate();
  assert.equal((await second.finished).code, 0);
  await spawnVault(t, environment);
});

test('servers on one PostgreSQL database may share a data directory', async (t) => {
  const place = await engineOf('postgres').place(t);
  await spawnVault(t, environmentOf(place));
  const second = await spawnVault(t, environmentOf(place));
  await createApplication(second.url);
});

function withRootKey(): Environment {
  return { STRONGROOM_ROOT_KEY: randomBytes(32).toString('base64') };
}

/** Two servers that start at once in places of their own over one empty database. */
async function startTwo(
  t: TestContext,
  environments: readonly Environment[],
): Promise<{ engine: Engine; place: Place; starts: PromiseSettledResult<VaultProcess>[] }> {
  const engine = engineOf('postgres');
  const place = await engine.place(t);
  const starts = await Promise.allSettled(
    environments.map(async (environment) => {
      const { dataDir } = await engineOf('sqlite').place(t);
      return spawnVault(t, environmentOf({ ...place, dataDir }, noBootstrapKey, environment));
    }),
  );
  return { engine, place, starts };
}

test('two servers that start at once on one database make one tenant, and both serve it', async (t) => {
  const shared = withRootKey();
  const { engine, place, starts } = await startTwo(t, [shared, shared]);
  const vaults = starts.map((start) => {
    assert.ok(start.status === 'fulfilled');
    return start.value;
  });
  assert.equal((await rowsOf(engine, place, 'tenants')).length, 1);
  const keys = vaults.flatMap((vault) => shownKey.exec(vault.output())?.[1] ?? []);
  assert.equal(keys.length, 1, 'one of them shows the key');
  for (const { url } of vaults) await createApplication(url, {}, keys[0]);
});

test('of two servers with root keys of their own on one empty database one is refused', async (t) => {
  const { engine, place, starts } = await startTwo(t, [withRootKey(), withRootKey()]);
  assert.equal((await rowsOf(engine, place, 'tenants')).length, 1);
  const refused = starts.filter((start) => start.status === 'rejected');
  assert.equal(refused.length, 1);
  assert.match(String(refused[0]?.reason), /does not open the keys stored in this database/);
});

test('what a start says is structured like all other lines where no terminal reads it', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const silent = { STRONGROOM_LOG_LEVEL: 'silent', STRONGROOM_METRICS_ADDRESS: '127.0.0.1:0' };
  const vault = await spawnVault(t, environmentOf(place, noBootstrapKey, silent));
  const lines = vault.output().trimEnd().split('\n');
  const said = lines.map((line) => JSON.parse(line));
  assert.ok(said.every(({ level, time }) => level === 30 && !Number.isNaN(Date.parse(time))));
  const messages = said.map(({ msg }) => msg);
  assert.match(
    messages[0],
    /^Created the root key .* nothing in this vault can ever be read again\.$/,
  );
  // The line after it, with the link of the console, may not be there yet.
  const listens = messages.indexOf(`Strongroom listens on ${vault.url}`);
  assert.match(messages[listens - 1], /^Metrics are at http:\/\/127\.0\.0\.1:\d+\/metrics$/);
});

onBothEngines('the file of the management key', (engine) => {
  const notPrinted = (vault: VaultProcess, key: string) => {
    assert.equal(vault.output().includes(key), false);
    assert.doesNotMatch(vault.output(), /shown only once/);
  };

  test('is written once, for its owner alone, and the key is printed nowhere', async (t) => {
    const place = await engine.place(t);
    const file = join(temporaryDirectory(t), 'management.key');
    const environment = environmentOf(place, noBootstrapKey, keyFileOf(file));
    const first = await spawnVault(t, environment);
    const key = readFileSync(file, 'utf8').trim();
    assert.match(key, /^key_test_mgt_/);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(dirname(file)), ['management.key']);
    notPrinted(first, key);
    assert.ok(first.output().includes(`is in the file ${file}`));
    // It is said after the vault listens, where another start prints the link itself.
    await untilOutput(first, /`strongroom person link --tenant default` prints a link to http/);
    assert.doesNotMatch(first.output(), /console#/, 'a link signs in like the key');
    await createApplication(first.url, {}, key);
    first.terminate();
    assert.equal((await first.finished).code, 0);
    rmSync(file);
    const second = await spawnVault(t, environment);
    assert.equal(existsSync(file), false, 'a later start writes no key');
    await createApplication(second.url, {}, key);
  });

  test('is read where it exists, and stays as it is', async (t) => {
    const place = await engine.place(t);
    const file = join(temporaryDirectory(t), 'management.key');
    writeFileSync(file, `${managementKey}\n`, { mode: 0o400 });
    const vault = await spawnVault(t, environmentOf(place, noBootstrapKey, keyFileOf(file)));
    await createApplication(vault.url, {}, managementKey);
    assert.equal(readFileSync(file, 'utf8'), `${managementKey}\n`);
    notPrinted(vault, managementKey);
  });
});

test('the file of the management key is refused, and no tenant is made, where it cannot be used', async (t) => {
  const engine = engineOf('sqlite');
  const place = await engine.place(t);
  const directory = temporaryDirectory(t);
  const file = join(directory, 'management.key');
  const key = newApiKey({ env: 'prod', kind: 'mgt', random: randomBytes });
  const cases = [
    {
      text: 'only.thirty.one.characters.long',
      mode: 0o600,
      says: /must have 32 to 200 characters/,
    },
    { text: key, mode: 0o600, says: /has no management key for a tenant of this type/ },
    { text: managementKey, mode: 0o604, says: /has mode 0604: users other than its owner/ },
    { text: managementKey, mode: 0o660, says: /has mode 0660: users other than its owner/ },
  ];
  const start = (...more: Environment[]) =>
    runCommand(['serve'], environmentOf(place, noBootstrapKey, keyFileOf(file), ...more));
  for (const { text, mode, says } of cases) {
    writeFileSync(file, text);
    chmodSync(file, mode);
    const { code, stdout, stderr } = await start();
    assert.equal(code, 1, stdout);
    assert.match(stderr, says);
    assert.ok(stderr.includes(`STRONGROOM_BOOTSTRAP_KEY_FILE (${file}) `), stderr);
    assert.equal(stderr.includes(text), false, 'the key is not printed');
  }
  const lost = await start(keyFileOf(join(directory, 'none', 'management.key')));
  assert.match(lost.stderr, /cannot be written: ENOENT/);
  const both = await start({ STRONGROOM_BOOTSTRAP_KEY: managementKey });
  assert.match(both.stderr, /cannot be combined with STRONGROOM_BOOTSTRAP_KEY/);
  assert.equal((await rowsOf(engine, place, 'tenants')).length, 0);
});

test('of servers that start at once, only the one that made the tenant keeps its key file', async (t) => {
  const files = [0, 1].map(() => join(temporaryDirectory(t), 'management.key'));
  const shared = withRootKey();
  const { starts } = await startTwo(
    t,
    files.map((file) => ({ ...shared, ...keyFileOf(file) })),
  );
  const [kept, ...others] = files.filter((file) => existsSync(file));
  assert.ok(kept !== undefined && others.length === 0);
  for (const start of starts) {
    assert.ok(start.status === 'fulfilled');
    await createApplication(start.value.url, {}, readFileSync(kept, 'utf8').trim());
  }
});

test('of servers that start at once with one file, each leaves the key in it', async (t) => {
  const file = join(temporaryDirectory(t), 'management.key');
  const environment = { ...withRootKey(), ...keyFileOf(file) };
  const { starts } = await startTwo(t, [environment, environment]);
  for (const start of starts) {
    assert.ok(start.status === 'fulfilled');
    await createApplication(start.value.url, {}, readFileSync(file, 'utf8').trim());
  }
});
