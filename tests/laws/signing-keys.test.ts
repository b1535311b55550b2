/** New keys that sign webhooks and the log: receivers and auditors who know an old key find the way to the new one. */
import assert from 'node:assert/strict';
import { constants, createVerify } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { destroyKey } from '../../src/access/key-rotations/destroy.ts';
import { type KeyPurpose, listTenantKeys } from '../../src/access/key-rotations/key-list.ts';
import {
  beginRotation,
  introduceKeys,
  webhookOverlapMs,
} from '../../src/access/key-rotations/rotation.ts';
import { deleteTenant } from '../../src/access/tenants/delete.ts';
import { tenantRowOf } from '../../src/access/tenants/read.ts';
import {
  type Checkpoint,
  openCheckpoint,
  type Signed,
  signStatement,
  statementHash,
} from '../../src/audit/statements.ts';
import { parseInstant } from '../../src/base/clock.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { createKeyring } from '../../src/keys/keyring.ts';
import { signingKeyOf } from '../../src/keys/signing.ts';
import type { Operator } from '../../src/rules/caller.ts';
import { perform } from '../../src/rules/operation.ts';
import { rotateTenantKeys } from '../../src/runtime/jobs/rotate-keys.ts';
import type { RotatedPurpose } from '../../src/store/key-tables.ts';
import { onBothEngines } from '../support/engines.ts';
import { type LogParts, readParts, signCheckpoints, verifyParts } from '../support/logs.ts';
import { runCommand } from '../support/process.ts';
import { type Arrival, addWebhook, allowing, startReceiver } from '../support/receivers.ts';
import { rowsOf } from '../support/rows.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

async function operatorOf({ vault, id }: TestTenant): Promise<Operator> {
  const tenant = await vault.running.vault.tenants.find(id);
  assert(tenant);
  return { tenant, application: null };
}

async function begin(tenant: TestTenant, purpose: RotatedPurpose): Promise<void> {
  const { vault: parts } = tenant.vault.running;
  const actor = await operatorOf(tenant);
  await perform({ store: parts.store, actor }, beginRotation(parts, actor, purpose));
}

async function rotate(tenant: TestTenant, purpose: RotatedPurpose): Promise<void> {
  await begin(tenant, purpose);
  const job = rotateTenantKeys({ ...tenant.vault.running.vault, isAlone: () => true });
  await job.run(new AbortController().signal);
}

async function destroy(tenant: TestTenant, purpose: KeyPurpose, version: number) {
  const { vault: parts } = tenant.vault.running;
  const actor = await operatorOf(tenant);
  return perform({ store: parts.store, actor }, destroyKey(parts, actor, { purpose, version }));
}

/** Version and state of each key of the purpose. */
async function versionsOf(tenant: TestTenant, purpose: KeyPurpose) {
  const { vault: parts } = tenant.vault.running;
  const { tenant: found } = await operatorOf(tenant);
  const keys = await listTenantKeys(parts, await tenantRowOf(parts.tenants, found));
  return keys
    .filter((one) => one.purpose === purpose)
    .map(({ version, state }) => [version, state]);
}

const publicPairKey = async ({ vault }: TestTenant, version: number) =>
  (await vault.send('GET', `/keys/webhooks.v${version}.key`)).text;

function isSigned({ body, headers }: Arrival, header: string, publicKey: string): boolean {
  const key = { key: publicKey, padding: constants.RSA_PKCS1_PSS_PADDING };
  return createVerify('SHA256')
    .update(body)
    .verify(key, headers[header] ?? '', 'base64');
}

onBothEngines('a new key that signs webhooks', (engine) => {
  test('for a day deliveries are signed by both keys, and then by the new one', async (t) => {
    const receiver = await startReceiver(t);
    const vault = await startVault(t, engine, { environment: allowing(t, [receiver]) });
    const [tenant, other] = [await newTenant(vault), await newTenant(vault)];
    for (const { id } of [tenant, other]) {
      await addWebhook(vault.running.vault, id, { url: receiver.url });
    }
    const arrive = async (sender: TestTenant): Promise<Arrival> => {
      const { id } = (await sender.token({ type: 'token', data: 'a value' })).body;
      const isOf = ({ event }: Arrival) =>
        event.type === 'token.created' && event.data.token.id === id;
      await receiver.until((arrivals) => arrivals.some(isOf));
      const arrival = receiver.arrivals.find(isOf);
      assert(arrival);
      return arrival;
    };
    const before = await publicPairKey(tenant, 1);
    assert.ok(isSigned(await arrive(tenant), 'svc-signature', before));
    await rotate(tenant, 'webhooks');
    vault.clock.advance(1000);
    const shown = await vault.send('GET', '/keys/webhooks.v2.key');
    assert.equal(shown.status, 200);
    assert.match(shown.headers.get('content-type') ?? '', /^text\/plain/);
    const after = shown.text;
    assert.notEqual(after, before);
    const both = await arrive(tenant);
    assert.equal(both.headers['svc-signature-version'], 'v1');
    assert.equal(both.headers['svc-signature-next-version'], 'v2');
    assert.ok(isSigned(both, 'svc-signature', before), 'a receiver with the old key goes on');
    assert.ok(isSigned(both, 'svc-signature-next', after), 'the new key signs as well');
    const foreign = await arrive(other);
    assert.equal(foreign.headers['svc-signature-version'], 'v1');
    assert.equal(foreign.headers['svc-signature-next'], undefined);
    await assert.rejects(begin(tenant, 'webhooks'), /version 1 .* signs until/i);
    vault.clock.advance(webhookOverlapMs);
    const alone = await arrive(tenant);
    assert.equal(alone.headers['svc-signature-version'], 'v2');
    assert.equal(alone.headers['svc-signature-next'], undefined);
    assert.ok(isSigned(alone, 'svc-signature', after));
    assert.equal((await vault.send('GET', '/keys/webhooks.v1.key')).text, before);
    for (const name of ['v3', 'v0', 'v02', 'v-1', 'vx', 'v9999999999']) {
      assert.equal((await vault.send('GET', `/keys/webhooks.${name}.key`)).status, 404, name);
    }
  });

  test('the key before can be destroyed, which ends the overlap; its public key stays', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await rotate(tenant, 'webhooks');
    await assert.rejects(destroy(tenant, 'webhooks', 2), /active/);
    await assert.rejects(destroy(tenant, 'webhooks', 9), /no version 9/i);
    await destroy(tenant, 'webhooks', 1);
    await rotate(tenant, 'webhooks');
    const second = await publicPairKey(tenant, 2);
    assert.deepEqual(await versionsOf(tenant, 'webhooks'), [
      [1, 'destroyed'],
      [2, 'decrypt_only'],
      [3, 'active'],
    ]);
    await destroy(tenant, 'webhooks', 2);
    const later = await startVault(t, engine, { place: vault.place, clock: vault.clock });
    assert.equal((await later.send('GET', '/keys/webhooks.v2.key')).text, second);
    await assert.rejects(destroy(tenant, 'webhooks', 2), /destroyed already/);
  });

  test('each tenant gets a pair of its own, which goes with the tenant', async (t) => {
    const vault = await startVault(t, engine);
    const tenants = [await newTenant(vault), await newTenant(vault)] as const;
    for (const tenant of tenants) await rotate(tenant, 'webhooks');
    const [one, two] = await Promise.all(tenants.map((tenant) => versionsOf(tenant, 'webhooks')));
    assert.deepEqual(one, [
      [1, 'decrypt_only'],
      [2, 'active'],
    ]);
    assert.deepEqual(two, [
      [1, 'decrypt_only'],
      [3, 'active'],
    ]);
    const { vault: parts } = vault.running;
    const actor = await operatorOf(tenants[0]);
    await perform({ store: parts.store, actor }, deleteTenant(parts, actor));
    const names = (await rowsOf(engine, vault.place, 'vault_keys')).map(({ name }) => name);
    assert.ok(!names.includes('webhooks.v2'), names.join());
    assert.ok(names.includes('webhooks.v3'), names.join());
  });
});

onBothEngines('a new key that signs the log', (engine) => {
  /** A tenant whose log was signed by one key, and then by another. */
  async function rotated(t: Parameters<typeof startVault>[0]) {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'early', type: 'token', data: 'one' });
    const first = (await tenant.send('GET', '/logs/checkpoint', { key: tenant.managementKey }))
      .body;
    vault.clock.advance(60_000);
    await rotate(tenant, 'log');
    vault.clock.advance(60_000);
    await tenant.token({ id: 'late', type: 'token', data: 'two' });
    await tenant.send('DELETE', '/tokens/early');
    await signCheckpoints(vault);
    const last = (await tenant.send('GET', '/logs/checkpoint', { key: tenant.managementKey })).body;
    const ofTenant = (parts: LogParts): LogParts => ({
      statements: parts.statements.filter(
        (one) => 'signed' in one && one.signed.statement.includes(tenant.id),
      ),
      entries: parts.entries.filter((one) => one.tenant_id === tenant.id),
    });
    const read = async () => ofTenant(await readParts(vault.place));
    return { vault, tenant, first, last, read };
  }

  test('the old key introduces it, and each of them leads a verifier to the other', async (t) => {
    const { tenant, first, last, read } = await rotated(t);
    assert.notEqual(last.public_key, first.public_key);
    assert.deepEqual(last.public_keys, [first.public_key, last.public_key]);
    const parts = await read();
    for (const trustedKeys of [[first.public_key], [last.public_key], []]) {
      assert.deepEqual(verifyParts(parts, { trustedKeys }).findings, []);
    }
    for (const kept of [first, last] as Signed[]) {
      assert.deepEqual(
        verifyParts(parts, { trustedKeys: [first.public_key], kept: [kept] }).findings,
        [],
      );
    }
    const introducing = parts.statements.flatMap((one) =>
      one.kind === 'checkpoint' ? (openCheckpoint(one.signed)?.introduces ?? []) : [],
    );
    assert.deepEqual(introducing, [last.public_key]);
    const logged = await tenant.logged('keyring');
    assert.deepEqual(logged, ['activate', 'finish', 'introduce', 'rotate']);
  });

  test('an attacker who writes to the database introduces no key', async (t) => {
    const { first, last, read } = await rotated(t);
    const parts = await read();
    const attacker = signingKeyOf(createKeyring(pooledRandom()).secret('audit'));
    const newest = openCheckpoint(last);
    assert(newest);
    const forged = (changes: Partial<Checkpoint>): Signed =>
      signStatement(attacker, { ...newest, seq: newest.seq + 1, ...changes });
    const introduction = openCheckpoint(first);
    assert(introduction);
    const withOwn = (signed: Signed): LogParts => ({
      ...parts,
      statements: [...parts.statements, { kind: 'checkpoint', signed }],
    });
    const claims = [
      // It names the true keys as those that it replaces, and itself as their successor.
      withOwn(forged({ succeeds: [first.public_key, last.public_key] })),
      withOwn(forged({ introduces: attacker.publicKey })),
      // The statement of the vault, changed: its signature is wrong then.
      {
        ...parts,
        statements: parts.statements.map((one) => {
          if (one.kind !== 'checkpoint') return one;
          const statement = one.signed.statement.replace(
            `"introduces":"${last.public_key}"`,
            `"introduces":"${attacker.publicKey}"`,
          );
          return { ...one, signed: { ...one.signed, statement } };
        }),
      },
    ];
    for (const [index, claim] of claims.entries()) {
      for (const trustedKeys of [[first.public_key], [last.public_key], []]) {
        const { findings } = verifyParts(claim, { trustedKeys });
        assert.ok(
          findings.some(({ kind }) => kind === 'forged'),
          `${index} ${trustedKeys.length} ${JSON.stringify(findings)}`,
        );
      }
    }
    // Without the introduction the new key is unknown to a verifier with the old one.
    const cut = parts.statements.filter(
      (one) => one.kind !== 'checkpoint' || openCheckpoint(one.signed)?.introduces === undefined,
    );
    const { findings } = verifyParts(
      { ...parts, statements: cut },
      { trustedKeys: [first.public_key] },
    );
    assert.ok(findings.some(({ kind }) => kind === 'forged'));
  });

  test('a key that was replaced signs no checkpoint any more', async (t) => {
    const { tenant, first, last, read } = await rotated(t);
    const parts = await read();
    const { tenant: found } = await operatorOf(tenant);
    const leaked = found.keyring.secret('audit', 1);
    assert(leaked);
    const newest = openCheckpoint(last);
    assert(newest);
    const { succeeds: _unknown, ...claimed } = newest;
    const late = (afterMs: number): LogParts => {
      const statement: Checkpoint = {
        ...claimed,
        seq: newest.seq + 1,
        created_at: parseInstant(newest.created_at + afterMs),
        previous: statementHash(last),
      };
      const signed = signStatement(signingKeyOf(leaked), statement);
      return { ...parts, statements: [...parts.statements, { kind: 'checkpoint', signed }] };
    };
    const options = { trustedKeys: [first.public_key] };
    const [finding] = verifyParts(late(3_600_000), options).findings;
    assert.equal(finding?.kind, 'forged');
    assert.match(finding.message, /had been replaced/);
    // A server that has not learned of the new key yet.
    assert.deepEqual(verifyParts(late(1000), options).findings, []);
  });

  test('a receipt by the new key verifies offline with the old one, and not with another', async (t) => {
    const { tenant, first, last, vault } = await rotated(t);
    const receipt = (await tenant.send('GET', '/tokens/early/erasure')).body;
    assert.equal(receipt.public_key, last.public_key);
    const directory = temporaryDirectory(t);
    const verify = async (content: object, key: string) => {
      const file = join(directory, 'receipt.json');
      writeFileSync(file, JSON.stringify(content));
      return (await runCommand(['erasure', 'verify', file, '--public-key', key], {})).code;
    };
    const other = signingKeyOf(createKeyring(pooledRandom()).secret('audit')).publicKey;
    assert.equal(await verify(receipt, first.public_key), 0);
    assert.equal(await verify(receipt, last.public_key), 0);
    assert.equal(await verify(receipt, other), 3);
    assert.equal(await verify({ ...receipt, introductions: [] }, first.public_key), 3);
    await assert.rejects(destroy(tenant, 'log', 2), /active/);
    await destroy(tenant, 'log', 1);
    vault.clock.advance(1000);
    const later = (await tenant.send('GET', '/tokens/early/erasure')).body;
    assert.deepEqual(later.public_keys, [first.public_key, last.public_key]);
    assert.equal(await verify(later, first.public_key), 0);
    assert.deepEqual(await versionsOf(tenant, 'log'), [
      [1, 'destroyed'],
      [2, 'active'],
    ]);
    await rotate(tenant, 'log');
    vault.clock.advance(1000);
    const third = (await tenant.send('GET', '/tokens/early/erasure')).body;
    assert.equal(third.public_keys.length, 3);
    assert.equal(await verify(third, first.public_key), 0, 'two introductions are followed');
  });

  test('while its rotation is paused before it signs, receipts do not name it', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'early', type: 'token', data: 'one' });
    await tenant.send('DELETE', '/tokens/early');
    await begin(tenant, 'log');
    const { vault: parts } = vault.running;
    const row = { tenant_id: tenant.id, purpose: 'log' } as const;
    const rotation = await parts.store.get('key_rotations', row);
    assert(rotation);
    const introducing = await introduceKeys(parts, rotation);
    assert(introducing);
    assert.equal((await parts.store.commit(introducing)).conflict, undefined);
    vault.clock.advance(3_600_000);
    const receipt = (await tenant.send('GET', '/tokens/early/erasure')).body;
    assert.deepEqual(receipt.introductions, []);
    const file = join(temporaryDirectory(t), 'receipt.json');
    writeFileSync(file, JSON.stringify(receipt));
    const words = ['erasure', 'verify', file, '--public-key', receipt.public_key];
    assert.equal((await runCommand(words, {})).code, 0);
  });
});
