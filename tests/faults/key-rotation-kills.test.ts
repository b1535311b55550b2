/** Vaults and databases are killed while keys are rotated under load: no read fails, nothing is lost or doubled. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fingerprintOf, searchTermOf } from '../../src/keys/digest.ts';
import type { Keyring } from '../../src/keys/keyring.ts';
import { ifProven } from '../../src/rules/proven-row.ts';
import { readConfig } from '../../src/runtime/config/config.ts';
import { openVault } from '../../src/runtime/open-vault.ts';
import { rowsUnderEarlierKeys } from '../../src/store/queries/key-versions.ts';
import type { Row } from '../../src/store/tables.ts';
import { engineOf, onBothEngines, type Place } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import { startPostgres } from '../support/postgres.ts';
import { environmentOf, runCommand, spawnVault, untilReady } from '../support/process.ts';
import { casesOf, seeded } from '../support/random.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication, managementKey, type Received, request } from '../support/vault.ts';

const purposes = ['fingerprint', 'search', 'data'] as const;
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
      received = await attempt(() => request(`${url()}/tokens`, 'POST', { key, body }));
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
async function assertNothingBefore(place: Place, known: Known, purpose: string): Promise<void> {
  const vault = await openVault(readConfig(environmentOf(place)));
  try {
    const [{ tenant_id } = assert.fail()] = await vault.tenants.all();
    const tenant = await vault.tenants.find(tenant_id);
    assert.ok(tenant);
    const { keyring } = tenant;
    const all = { tenant: tenant_id, version: 2 ** 31, after: undefined, rowsMax: 1_000_000 };
    const tokens = (await vault.store.scan(
      rowsUnderEarlierKeys('tokens', all),
    )) as unknown as Row<'tokens'>[];
    assert.equal(tokens.length, known.ids.size, 'no token is lost, and none is doubled');
    for (const token of tokens) {
      assert.ok(ifProven(tenant, 'tokens', token), 'a token opens');
      const named = Buffer.from(token.data).readUInt32BE(1);
      assert.ok(named > 1, 'a token names the new key');
      const forged = Buffer.from(token.data);
      forged.writeUInt32BE(1, 1);
      assert.equal(ifProven(tenant, 'tokens', { ...token, data: forged }), undefined);
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

function digestsBefore(keyring: Keyring, known: Known, purpose: string): ReadonlySet<string> {
  const values = [...known.ids.keys()];
  if (purpose === 'data') return new Set();
  const secret = keyring.secret(purpose as 'search', 1);
  assert.ok(secret);
  return new Set(
    values.map((value) =>
      purpose === 'search'
        ? Buffer.from(searchTermOf(secret, 'data', value)).toString('base64url')
        : fingerprintOf(secret, 'token', value),
    ),
  );
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
      const begun = await request(`${url()}/tenants/self/keys/rotations`, 'POST', {
        key: managementKey,
        body: { purpose },
      });
      assert.equal(begun.status, 202, begun.text);
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
      await untilFinished(url, known);
      stopping.abort();
      await loaded;
      const listed = await runCommand(['keys', 'list', '--json'], environmentOf(place));
      const { keys } = JSON.parse(listed.stdout);
      const before = keys.filter(
        (one: { purpose: string; version: number }) => one.purpose === purpose && one.version === 1,
      );
      assert.deepEqual(
        before.map(({ state, rows }: never) => ({ state, rows })),
        [{ state: 'decrypt_only', rows: 0 }],
      );
      await assertNothingBefore(place, known, purpose);
      const destroyed = await runCommand(
        ['keys', 'destroy', purpose, '1', '--yes'],
        environmentOf(place),
      );
      assert.equal(destroyed.code, 0, destroyed.stderr);
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

async function untilFinished(url: () => string, known: Known): Promise<void> {
  for (;;) {
    const listed = await attempt(() =>
      request(`${url()}/tenants/self/keys/rotations`, 'GET', { key: managementKey }),
    );
    if (listed?.body.every(({ state }: { state: string }) => state === 'finished')) return;
    await known.after(50);
  }
}
