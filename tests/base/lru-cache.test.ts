/** What is remembered is bounded, and what is used stays. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LruCache } from '../../src/base/lru-cache.ts';

describe('recent values', () => {
  it('are kept within the size, whatever is added', () => {
    const recent = new LruCache<number>(2000);
    for (let key = 0; key < 1000; key += 1) recent.set(`key ${key}`, key);
    const kept = Array.from({ length: 1000 }, (_, key) => recent.get(`key ${key}`) !== undefined);
    assert.ok(kept.filter(Boolean).length <= 20);
    assert.equal(recent.get('key 999'), 999);
  });

  it('are gone once they are deleted, also where they were set long ago', () => {
    const recent = new LruCache<string>(2000);
    recent.set('deleted', 'value');
    for (let key = 0; key < 9; key += 1) recent.set(`key ${key}`, 'other');
    assert.equal(recent.get('deleted'), 'value');
    recent.set('deleted', 'other value');
    recent.delete('deleted');
    assert.equal(recent.get('deleted'), undefined);
  });

  it('stay as long as they are used', () => {
    const recent = new LruCache<string>(2000);
    recent.set('used', 'value');
    for (let key = 0; key < 1000; key += 1) {
      recent.set(`key ${key}`, 'other');
      assert.equal(recent.get('used'), 'value');
    }
  });
});
