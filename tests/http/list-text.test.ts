/** A list that is written item by item is the same text as one that is serialized as a whole. */
import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { textOfList } from '../../src/http/protocol/list-text.ts';

const pagination = { page_size: 20, next: ']}' };
const caller = () => Promise.reject(new Error('nobody is asked for'));

function written(items: readonly (object | undefined)[]): Promise<string> {
  const list = { pagination, items: items.map((item) => () => item) };
  return text(textOfList({ list, caller, serialize: JSON.stringify }));
}

test('with no item, one and several; those that are gone are left out', async () => {
  const [a, b] = [{ id: 'a', data: '"]}' }, { id: 'b' }];
  for (const items of [
    [],
    [undefined],
    [a],
    [undefined, a],
    [a, undefined, b],
    [a, b, undefined],
  ]) {
    const data = items.filter((item) => item !== undefined);
    assert.equal(await written(items), JSON.stringify({ pagination, data }));
  }
});

test('an item is asked for when the ones before it were taken', async () => {
  const asked: number[] = [];
  const items = [0, 1, 2].map((at) => () => {
    asked.push(at);
    return { at };
  });
  const parts = textOfList({ list: { pagination, items }, caller, serialize: JSON.stringify });
  await parts.next();
  assert.deepEqual(asked, [0]);
  await parts.next();
  assert.deepEqual(asked, [0, 1]);
});
