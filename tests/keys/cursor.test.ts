/** Cursors: only ours, only unaltered, only for the route they were made for. */
import assert from 'node:assert/strict';
import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { latestInstant } from '../../src/base/clock.ts';
import { tokenIdLengthMax } from '../../src/base/ids.ts';
import type { Json } from '../../src/base/json.ts';
import { cursorLengthMax, openCursor, sealCursor } from '../../src/keys/cursor.ts';
import { encodeParts } from '../../src/keys/parts.ts';

const key = createSecretKey(randomBytes(32));
const route = 'GET /v2/tokens';
const payload = [1_700_000_000_000, 'd2f0a8b2-1c44-4d1f-8a4e-0b9a5c7e1f22'];
const cursor = sealCursor(key, route, payload);
const characters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/= \n.';

suite('a cursor', () => {
  test('opens to its payload and is safe in a URL', () => {
    const values = fc
      .jsonValue({ maxDepth: 2 })
      .filter((value) => JSON.stringify(value).length < 100);
    const check = fc.property(values, fc.string(), (value, anyRoute) => {
      const sealed = sealCursor(key, anyRoute, value as Json);
      assert.match(sealed, /^[A-Za-z0-9_-]+$/);
      const expected = JSON.parse(JSON.stringify(value));
      assert.deepEqual(openCursor(key, anyRoute, sealed), expected);
    });
    fc.assert(check, { numRuns: 500 });
  });

  test('does not open with any character changed, removed or added', () => {
    for (let index = 0; index <= cursor.length; index++) {
      const start = cursor.slice(0, index);
      const opened = (text: string) => openCursor(key, route, text);
      for (const character of characters) {
        assert.equal(opened(start + character + cursor.slice(index)), undefined);
        if (character === cursor[index] || index === cursor.length) continue;
        assert.equal(opened(start + character + cursor.slice(index + 1)), undefined);
      }
      if (index < cursor.length) {
        assert.equal(opened(start), undefined);
        assert.equal(opened(start + cursor.slice(index + 1)), undefined);
      }
    }
  });

  test('does not open for another route or under another key', () => {
    assert.deepEqual(openCursor(key, route, cursor), payload);
    assert.equal(openCursor(key, 'GET /logs', cursor), undefined);
    assert.equal(openCursor(createSecretKey(randomBytes(32)), route, cursor), undefined);
  });

  test('does not open when route and payload are cut elsewhere', () => {
    const sealed = sealCursor(key, 'ab', 12);
    const tag = Buffer.from(sealed, 'base64url').subarray(0, 16);
    const shifted = Buffer.concat([tag, Buffer.from('2')]).toString('base64url');
    assert.equal(openCursor(key, 'ab1', shifted), undefined);
  });

  test('gives nothing for what was never a cursor', () => {
    for (const text of ['', 'A', '-', '{}', 'AgAAAA==', 'é', '\ud800', 'A'.repeat(100_000)]) {
      assert.equal(openCursor(key, route, text), undefined);
    }
    const noise = fc.property(fc.string(), (text) => openCursor(key, route, text) === undefined);
    fc.assert(noise, { numRuns: 1000 });
  });

  test('has at most 1700 characters', () => {
    // 16 bytes of tag and the two quotes leave 1257 of the 1275 bytes that 1700 characters carry.
    const longest = sealCursor(key, route, 'x'.repeat(1257));
    assert.equal(longest.length, cursorLengthMax);
    assert.equal(openCursor(key, route, longest), 'x'.repeat(1257));
    assert.throws(() => sealCursor(key, route, 'x'.repeat(1258)), { name: 'AssertionError' });
    assert.equal(openCursor(key, route, authentic(JSON.stringify('x'.repeat(1258)))), undefined);
  });

  test('holds the longest id of a token', () => {
    const longestId = '\u3042'.repeat(tokenIdLengthMax);
    const place = [latestInstant, longestId, Number.MAX_SAFE_INTEGER];
    assert.deepEqual(openCursor(key, route, sealCursor(key, route, place)), place);
  });

  test('has the documented bytes', () => {
    assert.equal(authentic(JSON.stringify(payload)), cursor);
  });
});

/** A cursor made by the document alone. */
function authentic(json: string): string {
  const tag = createHmac('sha256', key)
    .update(encodeParts([route, json]))
    .digest();
  return Buffer.concat([tag.subarray(0, 16), Buffer.from(json)]).toString('base64url');
}
