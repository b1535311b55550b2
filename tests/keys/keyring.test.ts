/** Keyrings: one tenant's, under one key, with a key of its own for every purpose. */

import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { suite, test } from 'node:test';
import { inspect } from 'node:util';
import { newUuid, type TenantId } from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { AeadKey } from '../../src/keys/aead.ts';
import { keyVersionOf, openingKeys, openText, sealText } from '../../src/keys/envelope.ts';
import {
  createKeyring,
  type Keyring,
  openKeyring,
  purposes,
  rootKeys,
  sealingPurposes,
  secretPurposes,
  wrapKeyring,
} from '../../src/keys/keyring.ts';
import { destroy, rotate } from '../support/key-versions.ts';
import { testGrant } from '../support/openings.ts';

const random = pooledRandom();
const rootBytes = randomBytes(32);
const root = rootKeys(createSecretKey(rootBytes));
const tenant = newUuid<TenantId>(random);
const integrity = { name: 'VaultError', code: 'integrity' };
const binding = { tenant, id: 'token-1', field: 'data' };

function keyBytesOf(keyring: Keyring): Buffer[] {
  const entries = purposes.flatMap((purpose) => keyring.versions[purpose]);
  return entries.flatMap(({ key }) => (key === undefined ? [] : [key.export()]));
}

suite('a keyring', () => {
  test('has a different key for every purpose and every version', () => {
    const rotated = purposes.reduce(
      (ring, each) => rotate(ring, each, random),
      createKeyring(random),
    );
    const keys = keyBytesOf(rotated).map((bytes) => bytes.toString('hex'));
    assert.equal(keys.length, purposes.length * 2);
    assert.equal(new Set(keys).size, keys.length);
  });

  test('has other keys than every other keyring', () => {
    const keys = Array.from({ length: 50 }, () => keyBytesOf(createKeyring(random))).flat();
    assert.equal(new Set(keys.map((bytes) => bytes.toString('hex'))).size, 50 * purposes.length);
  });

  test('seals for one purpose what it does not open for another', () => {
    const keyring = createKeyring(random);
    const sealed = sealText(keyring.sealing('data'), binding, 'text', random);
    assert.throws(() => openText(keyring.opening('reply', testGrant), binding, sealed), integrity);
  });

  test('reveals no key when it is printed or serialized', () => {
    const keyring = rotate(createKeyring(random), 'data', random);
    keyring.sealing('data');
    const printed = [
      String(keyring),
      `${keyring}`,
      JSON.stringify({ keyring }),
      JSON.stringify(keyring.versions),
      inspect({ keyring }, { depth: 20 }),
      inspect(keyring, { depth: 20, showHidden: true, customInspect: false, getters: true }),
      inspect(keyring.sealing('data'), { depth: 20, showHidden: true, getters: true }),
      inspect(keyring.secret('search'), { depth: 20, showHidden: true, getters: true }),
    ].join('\n');
    for (const bytes of keyBytesOf(keyring)) {
      for (const encoding of ['hex', 'base64', 'base64url', 'latin1'] as const) {
        assert(!printed.includes(bytes.toString(encoding)));
      }
      assert(!printed.includes(bytes.subarray(0, 4).join(', ')));
      assert(!printed.includes(bytes.toString('hex', 0, 4).replaceAll(/..(?!$)/g, '$& ')));
    }
    assert.equal(inspect(keyring), '[keyring]');
    assert.equal(JSON.stringify(keyring), '"[keyring]"');
  });
});

suite('a wrapped keyring', () => {
  const keyring = destroy(rotate(rotate(createKeyring(random), 'data', random), 'data', random), {
    purpose: 'data',
    version: 1,
  });
  const wrapped = wrapKeyring(root, tenant, keyring, random);

  test('opens to the same keys and states', () => {
    const opened = openKeyring(root, testGrant, { tenant, wrapped });
    assert.deepEqual(keyBytesOf(opened), keyBytesOf(keyring));
    for (const purpose of purposes) {
      const states = (ring: Keyring) => ring.versions[purpose].map(({ key: _, ...entry }) => entry);
      assert.deepEqual(states(opened), states(keyring));
    }
    for (const purpose of sealingPurposes) {
      const sealed = sealText(keyring.sealing(purpose), binding, 'text', random);
      assert.equal(openText(opened.opening(purpose, testGrant), binding, sealed).reveal(), 'text');
    }
    for (const purpose of secretPurposes) {
      assert(opened.secret(purpose).equals(keyring.secret(purpose)));
    }
  });

  test('does not open for another tenant', () => {
    assert.throws(
      () => openKeyring(root, testGrant, { tenant: newUuid(random), wrapped }),
      integrity,
    );
  });

  test('does not open under another key, and says that this is why', () => {
    const other = rootKeys(createSecretKey(randomBytes(32)));
    assert.throws(() => openKeyring(other, testGrant, { tenant, wrapped }), {
      ...integrity,
      message: `the keyring of tenant ${tenant} is not sealed by this key`,
    });
  });

  test('has every flipped bit detected', () => {
    for (let bit = 0; bit < wrapped.length * 8; bit++) {
      const flipped = Buffer.from(wrapped);
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      assert.throws(
        () => openKeyring(root, testGrant, { tenant, wrapped: flipped }),
        integrity,
        `bit ${bit}`,
      );
    }
  });

  test('shows none of its keys', () => {
    for (const bytes of keyBytesOf(keyring)) {
      assert(!Buffer.from(wrapped).includes(bytes));
      assert(!Buffer.from(wrapped).includes(bytes.toString('base64')));
    }
  });

  test('is refused when it holds what this release cannot read, instead of losing it', () => {
    const id = keyVersionOf(wrapped);
    assert(id !== undefined);
    const keys = { purpose: 'keyring', activeVersion: id, at: () => new AeadKey(rootBytes) };
    const place = { tenant, id: tenant, field: 'keyring' };
    const stored = JSON.parse(openText(openingKeys(keys, testGrant), place, wrapped).reveal());
    const openedAs = (content: object) =>
      openKeyring(root, testGrant, {
        tenant,
        wrapped: sealText(keys, place, JSON.stringify(content), random),
      });
    assert.doesNotThrow(() => openedAs(stored));
    const [active] = stored.search;
    const unreadable = [
      { ...stored, novel: stored.search },
      { ...stored, search: undefined },
      { ...stored, search: [] },
      { ...stored, search: {} },
      { ...stored, search: [{ ...active, state: 'resting' }] },
      { ...stored, search: [{ ...active, key: 'AAAA' }] },
      { ...stored, search: [{ state: 'active' }] },
      { ...stored, search: [active, active] },
      { ...stored, search: [{ ...active, state: 'decrypt_only' }] },
    ];
    for (const content of unreadable) assert.throws(() => openedAs(content), integrity);
  });
});

suite('a keyring with several versions', () => {
  const before = createKeyring(random);
  const sealed = sealText(before.sealing('data'), binding, 'text', random);

  test('seals under the new version and opens the old one', () => {
    const after = rotate(before, 'data', random);
    assert.equal(after.activeVersion('data'), 2);
    assert.deepEqual(
      after.versions.data.map(({ state }) => state),
      ['decrypt_only', 'active'],
    );
    assert.equal(openText(after.opening('data', testGrant), binding, sealed).reveal(), 'text');
    assert.equal(keyVersionOf(sealText(after.sealing('data'), binding, 'text', random)), 2);
  });

  test('keeps the old secret of an HMAC until it is destroyed', () => {
    const after = rotate(before, 'search', random);
    assert(!after.secret('search').equals(before.secret('search')));
    assert(after.secret('search', 1)?.equals(before.secret('search')));
    const without = destroy(after, { purpose: 'search', version: 1 });
    assert.equal(without.secret('search', 1), undefined);
    assert.equal(without.secret('search', 3), undefined);
  });

  test('makes what is sealed under a destroyed version unreadable, and only that', () => {
    const rotated = rotate(before, 'data', random);
    const resealed = sealText(rotated.sealing('data'), binding, 'text', random);
    const after = destroy(rotated, { purpose: 'data', version: 1 });
    assert.throws(() => openText(after.opening('data', testGrant), binding, sealed), integrity);
    assert.equal(openText(after.opening('data', testGrant), binding, resealed).reveal(), 'text');
  });
});
