/** A stored value that was altered or moved answers as an integrity problem, never with anything else. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createTenantWithKey } from '../../src/access/tenants/bootstrap.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { rowsOf, verifyLog } from '../support/rows.ts';
import { having, literal } from '../support/sql.ts';
import { createApplication, type Received, startVault, type TestVault } from '../support/vault.ts';

const secrets = ['own secret 5f0c', 'other secret 9e1d', 'foreign secret 77ab', 'namesake 31d8'];
const [own, other, foreign, namesake] = secrets;

interface Prepared {
  readonly vault: TestVault;
  readonly key: string;
  /** The sealed value of each token by what is in it. */
  readonly sealed: ReadonlyMap<string | undefined, Uint8Array>;
  /** What is sealed in other fields, by the name of its table. */
  readonly elsewhere: Readonly<Record<'replies' | 'token_intents', Uint8Array>>;
  /** Writes these bytes over the sealed data of the first tenant's token `own`. */
  plant(bytes: Uint8Array): Promise<void>;
}

/** Two tenants with two tokens each, one of them under the same id in both. */
async function prepare(t: TestContext, engine: Engine): Promise<Prepared> {
  const vault = await startVault(t, engine);
  const key = await vault.application();
  const { newKey } = await createTenantWithKey(vault.running.vault, {
    tenant: 'another',
    type: 'test',
    key: undefined,
  });
  const foreignKey = await createApplication(vault.url, {}, newKey);
  const sealed = new Map<string | undefined, Uint8Array>();
  for (const [id, data, by] of [
    ['own', own, key],
    ['other', other, key],
    ['foreign', foreign, foreignKey],
    ['own', namesake, foreignKey],
  ] as const) {
    const before = await rowsOf(engine, vault.place, 'tokens');
    await vault.send('POST', '/tokens', { key: by, body: { type: 'token', id, data } });
    const known = new Set(before.map((row) => `${row.tenant_id} ${row.token_id}`));
    const rows = await rowsOf(engine, vault.place, 'tokens');
    const fresh = rows.find((row) => !known.has(`${row.tenant_id} ${row.token_id}`));
    assert.ok(fresh);
    sealed.set(data, Buffer.from(fresh.data));
  }
  const { tenant_id } = (await vault.send('GET', '/tokens/own', { key })).body;
  const elsewhere = await sealElsewhere(engine, vault);
  const plant = (bytes: Uint8Array) =>
    write(engine, vault, {
      set: `update tokens set data = ${literal(engine, bytes)}`,
      where: having(engine, 'tokens', { tenant_id, token_id: 'own' }),
    });
  return { vault, key, sealed, elsewhere, plant };
}

/** The same data in a token intent and in a stored answer, of the first tenant as well. */
async function sealElsewhere(engine: Engine, vault: TestVault): Promise<Prepared['elsewhere']> {
  const key = await vault.application({ permissions: ['token-intent:create', 'token:create'] });
  const body = { type: 'token', data: own };
  const headers = { 'svc-idempotency-key': 'elsewhere' };
  for (const path of ['/token-intents', '/tokens']) {
    const { status } = await vault.send('POST', path, { key, body, headers });
    assert.equal(status, 201);
  }
  const [intent] = await rowsOf(engine, vault.place, 'token_intents');
  const [reply] = await rowsOf(engine, vault.place, 'replies');
  assert.ok(intent && reply);
  return { token_intents: intent.data, replies: reply.reply };
}

interface Update {
  readonly set: string;
  readonly where: string;
}

async function write(engine: Engine, vault: TestVault, { set, where }: Update): Promise<void> {
  const rows = await engine.run(vault.place, `${set} where ${where} returning tenant_id`);
  assert.equal(rows.length, 1);
}

/** The bytes with one bit turned; a negative place counts from the end. */
function flipped(bytes: Uint8Array | undefined, at: number): Uint8Array {
  const copy = Buffer.from(bytes ?? []);
  const place = at < 0 ? copy.length + at : at;
  copy[place] = (copy[place] ?? 0) ^ 1;
  return copy;
}

type Tampering = (sealed: Prepared['sealed'], elsewhere: Prepared['elsewhere']) => Uint8Array;

const tamperings: Readonly<Record<string, Tampering>> = {
  'the data of another token': (sealed) => Buffer.from(sealed.get(other) ?? []),
  "the data of another tenant's token": (sealed) => Buffer.from(sealed.get(foreign) ?? []),
  "the data of another tenant's token of the same id": (sealed) =>
    Buffer.from(sealed.get(namesake) ?? []),
  'the data of a token intent': (_, elsewhere) => elsewhere.token_intents,
  'a stored answer': (_, elsewhere) => elsewhere.replies,
  'another format version': (sealed) => flipped(sealed.get(own), 0),
  'another key version': (sealed) => flipped(sealed.get(own), 4),
  'a turned bit in the nonce': (sealed) => flipped(sealed.get(own), 9),
  'a turned bit in the ciphertext': (sealed) => flipped(sealed.get(own), 31),
  'a turned bit in the tag': (sealed) => flipped(sealed.get(own), -1),
  'the end cut off': (sealed) => Buffer.from(sealed.get(own) ?? []).subarray(0, -1),
  'no bytes at all': () => Buffer.alloc(0),
  'plain JSON': () => Buffer.from('"planted"'),
};

onBothEngines('a token whose stored data is replaced', (engine) => {
  test('answers 500 with an integrity problem, whatever took its place', async (t) => {
    const { vault, key, sealed, elsewhere, plant } = await prepare(t, engine);
    for (const [title, tamper] of Object.entries(tamperings)) {
      await t.test(title, async () => {
        vault.logged.length = 0;
        await plant(tamper(sealed, elsewhere));
        const before = await rowsOf(engine, vault.place, 'tokens');
        isIntegrityProblem(await vault.send('GET', '/tokens/own', { key }));
        const body = { metadata: { a: 'b' } };
        isIntegrityProblem(await vault.send('PATCH', '/tokens/own', { key, body }));
        assert.deepEqual(await rowsOf(engine, vault.place, 'tokens'), before, 'nothing changed');

        const failures = vault.logged.filter(({ fields }) => fields?.code === 'integrity');
        assert.equal(failures.length, 2, 'the operator is told each time');
        for (const { fields } of failures)
          assert.match(fields?.reason ?? '', /data of own, tenant/);
        leaksNothing(JSON.stringify(vault.logged));

        const untouched = await vault.send('GET', '/tokens/other', { key });
        assert.equal(untouched.body.data, other);
      });
    }
    await plant(sealed.get(own) ?? Buffer.alloc(0));
    assert.equal((await vault.send('GET', '/tokens/own', { key })).body.data, own);
    await verifyLog(engine, vault.place);
  });
});

onBothEngines('a stored answer that is replaced', (engine) => {
  test('answers 500 with an integrity problem and has no effect', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const post = (idempotencyKey: string, data = own) =>
      vault.send('POST', '/tokens', {
        key,
        body: { type: 'token', data },
        headers: { 'svc-idempotency-key': idempotencyKey },
      });
    await post('first');
    const [first] = await rowsOf(engine, vault.place, 'replies');
    assert.ok(first);
    const isFirst = ({ key_digest }: typeof first) => key_digest === first.key_digest;
    await post('second', other);
    const second = (await rowsOf(engine, vault.place, 'replies')).find((row) => !isFirst(row));
    for (const bytes of [second?.reply, flipped(first.reply, 40)]) {
      await write(engine, vault, {
        set: `update replies set reply = ${literal(engine, bytes ?? Buffer.alloc(0))}`,
        where: having(engine, 'replies', { key_digest: first.key_digest }),
      });
      isIntegrityProblem(await post('first'));
      assert.equal((await post('second', other)).body.data, other);
    }
    assert.equal((await rowsOf(engine, vault.place, 'tokens')).length, 2);
  });
});

function isIntegrityProblem({ status, headers, text, body }: Received): void {
  assert.equal(status, 500, text);
  assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/);
  assert.equal(body.type, 'urn:strongroom:problem:integrity');
  assert.deepEqual(Object.keys(body).sort(), ['detail', 'status', 'title', 'type']);
  leaksNothing(text);
}

function leaksNothing(text: string): void {
  for (const secret of [...secrets, 'planted']) assert.equal(text.includes(secret), false);
}
