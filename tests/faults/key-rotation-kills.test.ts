/** Vaults and databases are killed while keys are rotated under load: no read fails, nothing is lost or doubled. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { createTenantWithKey } from '../../src/access/tenants/bootstrap.ts';
import { fingerprintOf, searchTermOf } from '../../src/keys/digest.ts';
import type { Keyring, ResealingPurpose } from '../../src/keys/keyring.ts';
import { readStored } from '../../src/keys/root/wrapped.ts';
import { ifProven } from '../../src/rules/proven-row.ts';
import { readConfig } from '../../src/runtime/config/config.ts';
import { openVault } from '../../src/runtime/open-vault.ts';
import {
  rowsUnderEarlierKeys,
  sealedColumns,
  sealedNames,
} from '../../src/store/queries/key-versions.ts';
import type { Unproven } from '../../src/store/stored-row.ts';
import type { Row } from '../../src/store/tables.ts';
import { type Engine, engineOf, onBothEngines, type Place } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import { startPostgres } from '../support/postgres.ts';
import {
  beginCommand,
  environmentOf,
  runCommand,
  spawnVault,
  untilReady,
} from '../support/process.ts';
import { casesOf, seeded } from '../support/random.ts';
import { keysInFile, openedWith } from '../support/root-keys.ts';
import { asStored, rowsOf, storedRows } from '../support/rows.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication, managementKey, type Received, request } from '../support/vault.ts';

const purposes = ['fingerprint', 'search', 'data', 'webhooks', 'log', 'root'] as const;
type RotatedKey = (typeof purposes)[number];
const isSigning = (purpose: RotatedKey) => purpose === 'webhooks' || purpose === 'log';
/** So that a rotation of the root key has steps between which it is killed. */
const tenantsMade = 60;
const rotations = casesOf({ all: purposes.length, drawn: 1 });
const kills = 2;
/** So many requests a rotation sees at least: its steps wait for seconds. A kill comes after some of them. */
const killWithin = 400;
const workers = 6;
/** Values that are made at about the same time, by several requests each. */
const valuesAtOnce = 8;

const textOf = (index: number) => `value ${index}`;

/** What requests have learned of each value: the ids under which it was made, which must be one. */
class Known {
  readonly ids = new Map<string, Set<string>>();
  answered = 0;
  #onAnswer: () => void = () => undefined;

  answer(): void {
    this.answered += 1;
    this.#onAnswer();
  }

  /** Resolves after so many more answers. */
  async after(answers: number): Promise<void> {
    const target = this.answered + answers;
    await new Promise<void>((resolve) => {
      this.#onAnswer = () => {
        if (this.answered >= target) resolve();
      };
    });
  }

  add(value: string, id: string): void {
    const ids = this.ids.get(value) ?? new Set();
    ids.add(id);
    this.ids.set(value, ids);
    assert.equal(ids.size, 1, `${value} has one token`);
  }
}

/** `undefined` where the vault is away. @throws for every response but those of a vault that is just starting. */
async function attempt(send: () => Promise<Received>): Promise<Received | undefined> {
  let received: Received;
  try {
    received = await send();
  } catch {
    return undefined;
  }
  if (received.status === 503 || received.status === 409) return undefined;
  assert.ok(received.status < 300, `${received.status} ${received.text}`);
  return received;
}

async function work(
  known: Known,
  {
    url,
    key,
    below,
    until,
  }: {
    readonly url: () => string;
    readonly key: string;
    readonly below: (limit: number) => number;
    readonly until: AbortSignal;
  },
): Promise<void> {
  while (!until.aborted) {
    const newest = Math.floor(known.answered / valuesAtOnce);
    const value = textOf(below(2) === 0 ? newest + below(valuesAtOnce) : below(newest + 1));
    const [id] = known.ids.get(value) ?? [];
    const step = below(3);
    let received: Received | undefined;
    if (id === undefined || step === 0) {
      const body = {
        type: 'token',
        data: value,
        search_indexes: ['{{ data }}'],
        metadata: { of: value },
        deduplicate_token: true,
      };
      const headers = { 'SVC-IDEMPOTENCY-KEY': randomUUID() };
      received = await attempt(() => request(`${url()}/tokens`, 'POST', { key, body, headers }));
      if (received) known.add(value, received.body.id);
    } else if (step === 1) {
      received = await attempt(() => request(`${url()}/tokens/${id}`, 'GET', { key }));
      if (received) assert.equal(received.body.data, value);
    } else {
      const body = { query: `data:"${value}" AND metadata.of:"${value}"` };
      received = await attempt(() => request(`${url()}/tokens/search`, 'POST', { key, body }));
      if (received)
        assert.deepEqual(
          received.body.data.map((one: { id: string }) => one.id),
          [id],
        );
    }
    if (received === undefined) await nextLook();
    else known.answer();
  }
}

/** Nothing in the database is under the first versions of the keys, by what it says and by trial. */
async function assertNothingBefore(
  place: Place,
  known: Known,
  purpose: ResealingPurpose,
): Promise<void> {
  const vault = await openVault(readConfig(environmentOf(place)));
  try {
    const [{ tenant_id } = assert.fail()] = await vault.tenants.all();
    const tenant = await vault.tenants.find(tenant_id);
    assert.ok(tenant);
    const { keyring } = tenant;
    const all = { tenant: tenant_id, version: 2 ** 31, after: undefined, rowsMax: 1_000_000 };
    const tokens = (await vault.store.scan(
      rowsUnderEarlierKeys('tokens', all),
      'vault',
    )) as unknown as Unproven<'tokens'>[];
    assert.equal(tokens.length, known.ids.size, 'no token is lost, and none is doubled');
    for (const found of tokens) {
      const token: Row<'tokens'> | undefined = ifProven(tenant, 'tokens', found);
      assert.ok(token, 'a token opens');
      const named = Buffer.from(token.data).readUInt32BE(1);
      assert.ok(named > 1, 'a token names the new key');
      const forged: Buffer = Buffer.from(token.data);
      forged.writeUInt32BE(1, 1);
      assert.equal(
        ifProven(tenant, 'tokens', asStored<'tokens'>({ ...token, data: forged })),
        undefined,
      );
    }
    for (const table of sealedNames) {
      // Stored responses have a key of their own, which is new with that of data alone.
      const { column, purpose: sealing } = sealedColumns[table];
      if (sealing === 'reply' && purpose !== 'data') continue;
      const rows = await vault.store.scan(rowsUnderEarlierKeys(table, all), 'vault');
      if (filled.some((name) => name === table)) assert.ok(rows.length > 0, `${table} has rows`);
      for (const row of rows) {
        const version = Buffer.from(row[column] as Uint8Array).readUInt32BE(1);
        assert.ok(version > 1, `a row of ${table} names the new key`);
      }
    }
    const digests = digestsBefore(keyring, known, purpose);
    const stored = await Promise.all([
      vault.store.select((db) => db.selectFrom('tokens').select('fingerprint')),
      vault.store.select((db) => db.selectFrom('search_terms').select('term')),
    ]);
    const values = stored.flat().map((row) => Object.values(row)[0] as string | null);
    assert.ok(values.length > 0);
    assert.deepEqual(
      values.filter((one) => one !== null && digests.has(one)),
      [],
    );
  } finally {
    await vault.close();
  }
}

function digestsBefore(
  keyring: Keyring,
  known: Known,
  purpose: ResealingPurpose,
): ReadonlySet<string> {
  const values = [...known.ids.keys()];
  if (purpose === 'data') return new Set();
  const secret = keyring.secret(purpose, 1);
  assert.ok(secret);
  return new Set(
    values.map((value) =>
      purpose === 'search'
        ? Buffer.from(searchTermOf(secret, 'data', value)).toString('base64url')
        : fingerprintOf(secret, 'token', value),
    ),
  );
}

/** Sealed rows of other resources than tokens and stored responses. */
const filled = ['token_intents', 'proxies', 'client_keys', 'webhooks', 'replies'] as const;

async function fill(url: string): Promise<void> {
  const key = await createApplication(url, { permissions: ['token-intent:create'] });
  const owned = async (path: string, sent: { readonly key: string; readonly body: object }) => {
    const { status, text } = await request(`${url}${path}`, 'POST', sent);
    assert.ok(status < 300, text);
  };
  await owned('/token-intents', { key, body: { type: 'token', data: 'intended' } });
  const manager = { key: managementKey };
  const proxy = { name: 'a proxy', destination_url: 'https://example.com/', require_auth: true };
  await owned('/proxies', { ...manager, body: proxy });
  await owned('/keys', { ...manager, body: {} });
  // No request of the load makes such an event.
  const webhook = { name: 'all', url: 'https://example.com/', events: ['token.deleted'] };
  await owned('/webhooks', { ...manager, body: webhook });
}

/** A rotation of the root key begins with a command, which is killed between two tenants. */
async function rotateRootUntilKilled(
  t: TestContext,
  { engine, place }: { readonly engine: Engine; readonly place: Place },
  after: number,
): Promise<void> {
  const rewrapped = async () =>
    (await storedRows(engine, place, 'tenants')).filter(
      ({ keyring }) => readStored(keyring)?.header?.generation === 2,
    ).length;
  const command = beginCommand(t, ['keys', 'rotate', 'root'], environmentOf(place));
  while ((await rewrapped()) <= after) await nextLook();
  await command.kill();
}

async function makeTenants(place: Place): Promise<void> {
  const vault = await openVault(readConfig(environmentOf(place)));
  for (let made = 0; made < tenantsMade; made += 1) {
    const settings = { tenant: `tenant ${made}`, type: 'test', key: undefined } as const;
    await createTenantWithKey(vault, settings);
  }
  await vault.close();
}

interface Killed {
  readonly place: Place;
  /** Kills the database and starts it again; absent for the embedded one, which dies with the vault. */
  readonly restartDatabase: (() => Promise<void>) | undefined;
}

onBothEngines('a rotation of keys under load that is killed', (engine) => {
  for (let round = 0; round < rotations; round += 1) {
    test(`goes on by itself, and nothing is lost or doubled (${round + 1})`, async (t) => {
      const below = seeded(t);
      const purpose = purposes[rotations === 1 ? below(purposes.length) : round] ?? 'data';
      const { place, restartDatabase } = await placeToKill();
      const vaults = [await spawnVault(t, environmentOf(place))];
      const url = () => vaults[below(vaults.length)]?.url ?? '';
      const key = await createApplication(url());
      await fill(url());
      if (purpose === 'root') await makeTenants(place);
      const [oldRoot = assert.fail()] = keysInFile(place);
      // Several servers are in different phases for a moment.
      if (restartDatabase) vaults.push(await spawnVault(t, environmentOf(place)));
      const known = new Known();
      const stopping = new AbortController();
      const loaded = Promise.all(
        Array.from({ length: workers }, () =>
          work(known, { url, key, below, until: stopping.signal }),
        ),
      );
      loaded.catch(() => undefined);
      await known.after(50);
      if (purpose === 'root') {
        await rotateRootUntilKilled(t, { engine, place }, below(tenantsMade / 2));
      } else {
        const begun = await request(`${url()}/tenants/self/keys/rotations`, 'POST', {
          key: managementKey,
          body: { purpose },
        });
        assert.equal(begun.status, 202, begun.text);
      }
      for (let kill = 0; kill < kills; kill += 1) {
        await known.after(1 + below(killWithin));
        if (restartDatabase && kill % 2 === 1) {
          await restartDatabase();
          for (const vault of vaults) await untilReady(vault.url);
        } else {
          const victim = below(vaults.length);
          await vaults[victim]?.kill();
          vaults[victim] = await spawnVault(t, environmentOf(place));
        }
      }
      if (purpose === 'root') {
        const names = async () =>
          (await rowsOf(engine, place, 'vault_keys')).map(({ name }) => name).sort();
        // Also the pair that signs deliveries to webhooks is the vault's own.
        while ((await names()).filter((name) => name.startsWith('root.')).join() !== 'root.2') {
          await known.after(50);
        }
      } else {
        await untilFinished(url, known);
      }
      stopping.abort();
      await loaded;
      if (purpose === 'root') {
        assert.deepEqual(await openedWith(engine, place, oldRoot), []);
        assert.equal(keysInFile(place).length, 1);
      } else {
        await assertRetired(place, purpose);
        if (!isSigning(purpose)) {
          await assertNothingBefore(place, known, purpose as ResealingPurpose);
        }
        const destroyed = await runCommand(
          ['keys', 'destroy', purpose, '1', '--yes'],
          environmentOf(place),
        );
        assert.equal(destroyed.code, 0, destroyed.stderr);
      }
      for (const [value, [id]] of known.ids) {
        const read = await request(`${url()}/tokens/${id}`, 'GET', { key });
        assert.equal(read.body.data, value, read.text);
      }
      t.diagnostic(`${purpose}: ${known.answered} requests, ${known.ids.size} values`);

      async function placeToKill(): Promise<Killed> {
        if (engine.name === 'sqlite') {
          return { place: await engineOf('sqlite').place(t), restartDatabase: undefined };
        }
        const cluster = await startPostgres();
        t.after(() => cluster.stop());
        return {
          place: {
            databaseUrl: await cluster.createDatabase(),
            dataDir: temporaryDirectory(t),
          },
          restartDatabase: async () => {
            await cluster.kill();
            await cluster.restart();
          },
        };
      }
    });
  }
});

async function assertRetired(place: Place, purpose: RotatedKey): Promise<void> {
  const listed = await runCommand(['keys', 'list', '--json'], environmentOf(place));
  const { keys } = JSON.parse(listed.stdout);
  const versions = keys
    .filter((one: { purpose: string }) => one.purpose === purpose)
    .map(({ state, rows }: { state: string; rows: number }) => ({ state, rows }));
  assert.equal(versions.length, 2, 'there is one new key');
  assert.deepEqual(versions[0], { state: 'decrypt_only', rows: 0 });
  assert.equal(versions[1].state, 'active');
}

async function untilFinished(url: () => string, known: Known): Promise<void> {
  for (;;) {
    const listed = await attempt(() =>
      request(`${url()}/tenants/self/keys/rotations`, 'GET', { key: managementKey }),
    );
    if (listed?.body.every(({ state }: { state: string }) => state === 'finished')) return;
    await known.after(50);
  }
}
