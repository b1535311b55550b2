/** What was removed from a list keeps nothing of the list in memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LinkedList } from '../../src/base/linked-list.ts';

test('a removed item refers to no other, and those that remain keep their order', () => {
  const list = new LinkedList<number>();
  const links = [1, 2, 3, 4].map((item) => list.add(item));
  for (const link of links.slice(0, 3)) {
    assert.equal(list.remove(link), true);
    assert.equal(link.before, undefined);
    assert.equal(link.after, undefined);
    assert.equal(list.remove(link), false);
  }
  list.add(5);
  assert.deepEqual([...list], [4, 5]);
  assert.equal(list.first, 4);
  assert.equal(list.size, 2);
});
