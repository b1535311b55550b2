/** Each purpose has a key of its own: what is stored or handed out for it is made with that key alone. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VaultError } from '../../src/base/errors.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { replyOf } from '../../src/http/idempotency/stored-reply.ts';
import { openCursor } from '../../src/keys/cursor.ts';
import { fingerprintOf, searchTermOf } from '../../src/keys/digest.ts';
import { createKeyring, Keyring, type Purpose, purposes } from '../../src/keys/keyring.ts';
import { signingKeyOf } from '../../src/keys/signing.ts';
import { ifProven } from '../../src/rules/proven-row.ts';
import type { Tenant } from '../../src/rules/tenant.ts';
import { openData } from '../../src/tokens/contents/sealed-row.ts';
import { onBothEngines } from '../support/engines.ts';
import { testOpener } from '../support/openings.ts';
import { createProxy } from '../support/proxies.ts';
import { asStored } from '../support/rows.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

/** Nothing is made for it yet. */
const unused: readonly Purpose[] = ['webhook'];

/** True when the key of the purpose is the one with which it was made. */
type Fits = (tenant: Tenant) => boolean;

/** One thing made for each purpose. */
async function madeBy(tenant: TestTenant): Promise<Readonly<Partial<Record<Purpose, Fits>>>> {
  const now = tenant.vault.clock.now();
  const made = await tenant.send('POST', '/tokens', {
    headers: { 'svc-idempotency-key': 'once' },
    body: {
      type: 'token',
      data: 'Ada',
      fingerprint_expression: '{{ data }}',
      search_indexes: ['{{ data }}'],
    },
  });
  assert.equal(made.status, 201, made.text);
  const key = tenant.managementKey;
  const page = await tenant.send('GET', '/applications?size=1', { key });
  await tenant.send('GET', '/logs/checkpoint', { key });
  const [token] = await tenant.rows('tokens');
  const [reply] = await tenant.rows('replies');
  const [term] = await tenant.rows('search_terms');
  const [application] = await tenant.rows('applications');
  await createProxy(tenant);
  const [proxy] = await tenant.rows('proxies');
  const [checkpoint] = await tenant.rows('checkpoints');
  assert.ok(token && reply && term && application && proxy && checkpoint);
  return {
    data: (keys) => opens(() => openData(testOpener(keys), token, now)),
    reply: (keys) => opens(() => replyOf(testOpener(keys), reply, now)),
    fingerprint: ({ keyring }) =>
      fingerprintOf(keyring.secret('fingerprint'), 'token', 'Ada') === token.fingerprint,
    search: ({ keyring }) =>
      base64url(searchTermOf(keyring.secret('search'), 'data', 'Ada')) === term.term,
    row: (keys) =>
      ifProven(keys, 'applications', asStored(application)) !== undefined &&
      ifProven(keys, 'proxies', asStored(proxy)) !== undefined,
    audit: ({ keyring }) =>
      signingKeyOf(keyring.secret('audit')).publicKey === checkpoint.public_key,
    cursor: ({ keyring }) =>
      openCursor(keyring.secret('cursor'), 'GET /applications', page.body.pagination.next) !==
      undefined,
  };
}

function opens(open: () => unknown): boolean {
  try {
    open();
    return true;
  } catch (error) {
    if (error instanceof VaultError && error.code === 'integrity') return false;
    throw error;
  }
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}

onBothEngines('what is made for a purpose', (engine) => {
  test('is made with the key of that purpose, and of no other', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const fits = await madeBy(tenant);
    const real = await vault.running.vault.tenants.find(tenant.id);
    assert.ok(real);
    const others = createKeyring(pooledRandom()).versions;
    const own = real.keyring.versions;
    for (const purpose of purposes) {
      if (unused.includes(purpose)) continue;
      const fit = fits[purpose];
      assert.ok(fit, `nothing is made for ${purpose}`);
      const alone = new Keyring({ ...others, [purpose]: own[purpose] });
      const without = new Keyring({ ...own, [purpose]: others[purpose] });
      assert.equal(fit({ ...real, keyring: alone }), true, `${purpose} alone`);
      assert.equal(fit({ ...real, keyring: without }), false, `all but ${purpose}`);
    }
  });
});
