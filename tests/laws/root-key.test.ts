/** Over existing data, a start without the right root key is refused, says why, and changes nothing. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Engine, onBothEngines, type Place } from '../support/engines.ts';
import { type Environment, environmentOf, runCommand, spawnVault } from '../support/process.ts';
import { assertUnchanged, contentOf } from '../support/rows.ts';
import { filesBelow } from '../support/scan.ts';
import { newTenant } from '../support/tenant.ts';
import { createApplication, managementKey, request, startVault } from '../support/vault.ts';

interface Refusal {
  readonly title: string;
  /** What happens to the place, and the variables of the start that follows. */
  readonly spoil: (place: Place, engine: Engine) => Environment | Promise<Environment>;
  /** What the operator is told. */
  readonly says: RegExp;
}

const keyFile = (place: Place) => join(place.dataDir, 'root.key');
const foreign = () => randomBytes(32).toString('base64');

function spoilFile(text: string) {
  return (place: Place): Environment => {
    writeFileSync(keyFile(place), text);
    return {};
  };
}

/** Another byte in its place, whichever it is. */
const alteredIn = (column: string) =>
  `cast(substr(${column}, 1, 40) || iif(substr(${column}, 41, 1) = x'00', x'01', x'00') ||
    substr(${column}, 42) as blob)`;

const alterKeyring = {
  sqlite: `update tenants set keyring = ${alteredIn('keyring')}`,
  postgres: 'update tenants set keyring = set_byte(keyring, 40, 255 - get_byte(keyring, 40))',
};

const alterCheck = {
  sqlite: `update vault_keys set private_key = ${alteredIn('private_key')}`,
  postgres:
    'update vault_keys set private_key = set_byte(private_key, 40, 255 - get_byte(private_key, 40))',
};

const refusals: readonly Refusal[] = [
  {
    title: 'another root key in the environment',
    spoil: () => ({ STRONGROOM_ROOT_KEY: foreign() }),
    says: /root key \(environment\) does not open the keys stored in this database: .* of the source file\)/,
  },
  {
    title: 'another root key in the file',
    spoil: (place) => spoilFile(foreign())(place),
    says: /root key \(file .*root\.key\) does not open the keys stored in this database/,
  },
  {
    title: 'no root key',
    spoil: (place) => {
      rmSync(keyFile(place));
      return {};
    },
    says: /root key \(file .*root\.key\) is missing, and a new one could not open the data/,
  },
  {
    title: 'no root key where its file is said to be',
    spoil: (place) => ({ STRONGROOM_ROOT_KEY_FILE: join(place.dataDir, 'elsewhere.key') }),
    says: /root key \(file .*elsewhere\.key\) is missing/,
  },
  ...[
    { SOURCE: 'vault-transit', VAULT_ADDRESS: 'https://127.0.0.1:9', VAULT_TOKEN: 'token' },
    { SOURCE: 'aws-kms', AWS_KMS_KEY: 'alias/of-nothing', AWS_KMS_REGION: 'eu-west-1' },
    { SOURCE: 'shamir' },
  ].map(({ SOURCE: source, ...variables }) => ({
    title: `the source ${source}, which never wrapped a key`,
    spoil: () => ({
      STRONGROOM_ROOT_KEY_SOURCE: source,
      ...Object.fromEntries(
        Object.entries(variables).map(([name, value]) => [`STRONGROOM_${name}`, value]),
      ),
    }),
    says: /are wrapped by (?:the source )?file.* STRONGROOM_ROOT_KEY_SOURCE=file/i,
  })),
  {
    title: 'a malformed root key in the environment',
    spoil: () => ({ STRONGROOM_ROOT_KEY: foreign().slice(0, -4) }),
    says: /root key \(environment\) is not the base64 of 32 bytes/,
  },
  {
    title: 'a malformed root key in the file',
    spoil: spoilFile('not a key'),
    says: /root key \(file .*root\.key\) is not the base64 of 32 bytes/,
  },
  {
    title: 'a root key that others can read',
    spoil: (place) => {
      chmodSync(keyFile(place), 0o644);
      return {};
    },
    says: /root key \(file .*root\.key\) has mode 0644/,
  },
  {
    title: 'the check row altered, and all keyrings',
    spoil: async (place, engine) => {
      await engine.run(place, alterCheck[engine.name]);
      await engine.run(place, alterKeyring[engine.name]);
      return {};
    },
    says: /root key .* does not open the keys stored .* or the database was altered/,
  },
];

/** A place where a vault ran and kept a token. */
async function usedPlace(t: TestContext, engine: Engine): Promise<Place> {
  const vault = await startVault(t, engine);
  const key = await vault.application();
  await vault.send('POST', '/tokens', { key, body: { type: 'token', data: 'kept', id: 'kept' } });
  await vault.stop();
  return vault.place;
}

onBothEngines('the start', (engine) => {
  test('is refused, says why, and changes nothing', { concurrency: 4 }, async (t) => {
    await Promise.all(
      refusals.map((refusal) =>
        t.test(`with ${refusal.title}`, (one) => isRefused(one, engine, refusal)),
      ),
    );
  });

  test('of an administrative command is refused alike', async (t) => {
    const place = await usedPlace(t, engine);
    const before = await contentOf(engine, place);
    const words = ['tenant', 'create', '--name', 'another'];
    const environment = environmentOf(place, { STRONGROOM_ROOT_KEY: foreign() });
    const { code, stdout, stderr } = await runCommand(words, environment);
    assert.equal(code, 1, stdout);
    assert.match(stderr, /root key \(environment\) does not open the keys/);
    assertUnchanged(before, await contentOf(engine, place));
  });

  test('goes on where the row of one tenant was altered: that one is refused, with an alert at its use', async (t) => {
    const first = await startVault(t, engine);
    const [one, other] = [await newTenant(first), await newTenant(first)];
    await first.stop();
    const { place } = first;
    const where = `where tenant_id = '${one.id}'`;
    const spoiled = `${alterKeyring[engine.name]} ${where}`;
    for (const sql of [`update tenants set type = 'production' ${where}`, spoiled]) {
      await engine.run(place, sql);
      const vault = await startVault(t, engine, { place });
      const statusOf = async (key: string) =>
        (await vault.send('GET', '/tenants/self', { key })).status;
      assert.equal(await statusOf(other.managementKey), 200);
      assert.equal(await statusOf(one.managementKey), 401);
      const { text } = await vault.send('GET', '/metrics');
      assert.match(text, /^strongroom_integrity_failures_total 1$/m);
      assert.ok(
        vault.logged.some(({ message }) =>
          /altered outside the vault and is refused/.test(message),
        ),
      );
      await vault.stop();
    }
  });

  test('goes on, with an alert, where only the row that proves the root key was altered', async (t) => {
    const place = await usedPlace(t, engine);
    await engine.run(place, alterCheck[engine.name]);
    const vault = await startVault(t, engine, { place });
    const [alert] = vault.logged.map(({ message }) => message);
    assert.match(alert ?? '', /^the row that proves the root key was altered/);
    assert.equal((await vault.send('GET', '/tenants/self', { key: managementKey })).status, 200);
    await vault.stop();
    await engine.run(place, 'delete from vault_keys');
    await (await startVault(t, engine, { place })).stop();
    assert.equal((await engine.run(place, 'select name from vault_keys')).length, 1);
  });

  test('with another root key is refused by the one row that proves it, whatever the tenants say', async (t) => {
    const place = await usedPlace(t, engine);
    // As if every tenant were gone: nothing but the row is left to say whose database it is.
    await engine.run(place, 'delete from tenants');
    const environment = environmentOf(place, { STRONGROOM_ROOT_KEY: foreign() });
    const { code, stderr } = await runCommand(['serve'], environment);
    assert.equal(code, 1);
    assert.match(stderr, /root key \(environment\) does not open the keys stored/);
  });

  test('leaves no trace of the root key in the database', async (t) => {
    const place = await engine.place(t);
    const bytes = randomBytes(32);
    const text = bytes.toString('base64');
    const vault = await startVault(t, engine, {
      place,
      environment: { STRONGROOM_ROOT_KEY: text },
    });
    const key = await vault.application();
    await vault.send('POST', '/tokens', { key, body: { type: 'token', data: 'kept' } });
    const rows = (await contentOf(engine, place)).join('\n');
    assert.ok(rows.includes('tokens'));
    for (const form of [text, bytes.toString('base64url'), bytes.toString('hex')]) {
      assert.equal(rows.includes(form), false);
      // What is bytes is written out in hexadecimal.
      assert.equal(rows.includes(Buffer.from(form).toString('hex')), false);
    }
    for (const { path, bytes: content } of filesBelow(place.dataDir)) {
      for (const form of [bytes, text]) assert.equal(content.includes(form), false, path);
    }
  });

  test('succeeds again with the right root key, from the file or from the environment', async (t) => {
    const place = await usedPlace(t, engine);
    const right = readFileSync(keyFile(place), 'utf8').trim();
    const moved = join(place.dataDir, 'moved.key');
    writeFileSync(moved, `${right}\n`, { mode: 0o600 });
    rmSync(keyFile(place));
    const ways = [{ STRONGROOM_ROOT_KEY: right }, { STRONGROOM_ROOT_KEY_FILE: moved }];
    for (const way of ways) {
      const vault = await spawnVault(t, environmentOf(place, way));
      const key = await createApplication(vault.url);
      const read = await request(`${vault.url}/tokens/kept`, 'GET', { key });
      assert.equal(read.body.data, 'kept');
      await vault.kill();
    }
    assert.equal(existsSync(keyFile(place)), false);
  });
});

async function isRefused(t: TestContext, engine: Engine, { spoil, says }: Refusal): Promise<void> {
  const place = await usedPlace(t, engine);
  const environment = environmentOf(place, await spoil(place, engine));
  const stored = await contentOf(engine, place);
  const file = contentOfFile(keyFile(place));

  const { code, stdout, stderr } = await runCommand(['serve'], environment);

  assert.equal(code, 1, stdout);
  assert.match(stderr, says);
  assert.equal(stdout, '');
  const { STRONGROOM_ROOT_KEY: given = 'not given' } = environment;
  assert.equal(stderr.includes(given), false, 'the key is not printed');
  assertUnchanged(stored, await contentOf(engine, place));
  assert.equal(contentOfFile(keyFile(place)), file, 'no other root key was made');
}

function contentOfFile(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}
