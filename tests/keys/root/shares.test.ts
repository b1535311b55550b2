/** Shares give the root key only together, and a wrong or repeated share is noticed. */
import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { inspect } from 'node:util';
import { RootKeyError } from '../../../src/keys/root/root-key.ts';
import { ShareCollection, splitRootKey } from '../../../src/keys/root/shares.ts';

const key = () => createSecretKey(randomBytes(32));

describe('shares of a root key', () => {
  it('give it in any order and choice of as many as the threshold', async () => {
    const root = key();
    const shares = await splitRootKey(root, { shares: 5, threshold: 3 });
    for (const chosen of [
      [0, 1, 2],
      [4, 2, 0],
      [3, 4, 1],
    ]) {
      const collection = new ShareCollection();
      for (const [at, index] of chosen.entries()) {
        const progress = await collection.add(` ${shares[index]}\n`);
        assert.deepEqual([progress.given, progress.threshold], [at + 1, 3]);
        assert.equal(progress.key?.equals(root), at === 2 ? true : undefined);
      }
    }
  });

  it('are 2 to 255', async () => {
    for (const [shares, threshold] of [
      [5, 1],
      [2, 3],
      [256, 2],
      [3, 2.5],
      [Number.NaN, 2],
    ] as const) {
      await assert.rejects(splitRootKey(key(), { shares, threshold }), RootKeyError);
    }
    assert.equal((await splitRootKey(key(), { shares: 255, threshold: 255 })).length, 255);
  });

  it('are noticed when one is given twice, and the others stay', async () => {
    const root = key();
    const [first = '', second = ''] = await splitRootKey(root, { shares: 2, threshold: 2 });
    const collection = new ShareCollection();
    await collection.add(first);
    await assert.rejects(collection.add(first), /given before/);
    assert.ok((await collection.add(second)).key?.equals(root));
  });

  it('are noticed when one is of another key', async () => {
    const [own = ''] = await splitRootKey(key(), { shares: 2, threshold: 2 });
    const [foreign = ''] = await splitRootKey(key(), { shares: 2, threshold: 2 });
    const collection = new ShareCollection();
    await collection.add(own);
    await assert.rejects(collection.add(foreign), /another root key/);
  });

  it('are noticed when one has any wrong character', async () => {
    const [share = ''] = await splitRootKey(key(), { shares: 2, threshold: 2 });
    for (const at of Array.from(share).keys()) {
      const other = share[at] === 'A' ? 'B' : 'A';
      const text = share.slice(0, at) + other + share.slice(at + 1);
      await assert.rejects(new ShareCollection().add(text), RootKeyError);
    }
    for (const text of ['', 'srs1_', share.slice(0, -1), `${share}A`, 'key_test_mgt_x']) {
      await assert.rejects(new ShareCollection().add(text), RootKeyError);
    }
  });

  it('of two splittings of one key do not give a key', async () => {
    const root = key();
    const one = await splitRootKey(root, { shares: 2, threshold: 2 });
    const two = await splitRootKey(root, { shares: 2, threshold: 2 });
    const collection = new ShareCollection();
    await collection.add(one[0] ?? '');
    // Both may be of one point by chance, once in 255 times.
    await assert.rejects(collection.add(two[1] ?? ''), /given before|give all again/);
  });

  it('are printed nowhere', async () => {
    const [share = ''] = await splitRootKey(key(), { shares: 2, threshold: 2 });
    const collection = new ShareCollection();
    await collection.add(share);
    const shown = `${inspect(collection, { depth: 9, showHidden: true })}${JSON.stringify(collection)}`;
    assert.doesNotMatch(shown, /Buffer|srs1/);
  });
});
