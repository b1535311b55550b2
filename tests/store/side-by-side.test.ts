/** Work for many tenants a few at a time, and what becomes of the others when one fails. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sideBySide } from '../../src/store/per-tenant/record.ts';

const items = Array.from({ length: 12 }, (_, n) => n);
const turn = () => new Promise<void>((done) => setImmediate(done));

test('each item is worked on once, as many at a time as were asked for', async () => {
  const done: number[] = [];
  let underWay = 0;
  let most = 0;
  await sideBySide(items, 4, async (item) => {
    most = Math.max(most, ++underWay);
    await turn();
    underWay--;
    done.push(item);
  });
  assert.deepEqual(
    done.toSorted((a, b) => a - b),
    items,
  );
  assert.equal(most, 4);
});

test('after a failure none begins, and those under way are waited for', async () => {
  const begun: number[] = [];
  const done: number[] = [];
  const working = sideBySide(items, 3, async (item) => {
    begun.push(item);
    if (item === 1) throw new Error('item 1');
    await turn();
    done.push(item);
  });
  await assert.rejects(working, /item 1/);
  assert.deepEqual(begun, [0, 1, 2]);
  assert.deepEqual(done, [0, 2]);
});
