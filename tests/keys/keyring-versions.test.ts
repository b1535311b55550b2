/** A new key version opens before it seals, and an old one opens until it is destroyed. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import type { Instant } from '../../src/base/clock.ts';
import { createKeyring, type Keyring, type purposes } from '../../src/keys/keyring.ts';

const now = Date.UTC(2026, 10, 24) as Instant;
const options = { random: randomBytes, now };

function states(keyring: Keyring, purpose: (typeof purposes)[number]): string[] {
  return keyring.versions[purpose].map(({ state }) => state);
}

describe('a keyring with several versions', () => {
  it('seals under the former version until the new one is active', () => {
    const first = createKeyring(randomBytes);
    const added = first.withVersion('data', options);
    assert.deepEqual(states(added, 'data'), ['active', 'decrypt_only']);
    assert.equal(added.sealing('data').activeVersion, 1);
    assert.notEqual(added.sealing('data').at(2), undefined);
    const active = added.withNewestActive('data');
    assert.deepEqual(states(active, 'data'), ['decrypt_only', 'active']);
    assert.equal(active.sealing('data').activeVersion, 2);
    assert.notEqual(active.sealing('data').at(1), undefined);
    assert.deepEqual(states(first, 'data'), ['active'], 'a keyring never changes');
  });

  it('has no key of a destroyed version, and keeps its number', () => {
    const rotated = createKeyring(randomBytes)
      .withVersion('search', options)
      .withNewestActive('search');
    const destroyed = rotated.withDestroyed('search', 1, now);
    assert.deepEqual(states(destroyed, 'search'), ['destroyed', 'active']);
    assert.equal(destroyed.secret('search', 1), undefined);
    assert.equal(destroyed.livingSecrets('search').length, 1);
    assert.equal(destroyed.withVersion('search', options).versions.search.length, 3);
    assert.throws(() => rotated.withDestroyed('search', 2, now), /never destroyed/);
  });

  it('gives the active secret first, and the others once', () => {
    const added = createKeyring(randomBytes).withVersion('search', options);
    const one = added.secret('search', 1);
    const two = added.secret('search', 2);
    assert.deepEqual(added.livingSecrets('search'), [one, two]);
    assert.deepEqual(added.withNewestActive('search').livingSecrets('search'), [two, one]);
  });

  it('tells the version of a digest from that of the data key', () => {
    const keyring = createKeyring(randomBytes)
      .withVersion('data', options)
      .withVersion('search', options)
      .withNewestActive('data')
      .withNewestActive('search')
      .withVersion('data', options)
      .withNewestActive('data');
    assert.deepEqual(
      [1, 2, 3].map((version) => keyring.digestVersion('search', version)),
      [1, 2, 2],
    );
    assert.deepEqual(
      [1, 2, 3].map((version) => keyring.digestVersion('fingerprint', version)),
      [1, 1, 1],
    );
  });
});
