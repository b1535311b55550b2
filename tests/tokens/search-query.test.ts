/** The search language: what it reads, what it refuses, and that it never takes long. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { VaultError } from '../../src/base/errors.ts';
import { parseSearch, queryLengthMax } from '../../src/tokens/search/search-query.ts';

const quote = (text: string) => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;

suite('a search query', () => {
  test('gives back every value that was quoted, whatever it is', () => {
    const texts = fc.string({ unit: 'grapheme', maxLength: 30 });
    const check = fc.property(texts, texts, texts, (data, key, value) => {
      const query = `data:${quote(data)} AND metadata.${quote(key)}:${quote(value)}`;
      assert.deepEqual(parseSearch(query), { data: [data], metadata: [{ key, value }] });
    });
    fc.assert(check, { numRuns: 2000 });
  });

  test('takes bare values as they stand: digits stay text, and so do signs and colons', () => {
    for (const value of [
      '0042',
      '12.50',
      '123-45-6789',
      '+49123',
      "O'Brien",
      'a:b',
      '50%',
      '日本',
      'true',
    ]) {
      assert.deepEqual(parseSearch(`data:${value}`).data, [value]);
    }
    assert.deepEqual(parseSearch('metadata.at:2020-01-01T00:00:00Z').metadata, [
      { key: 'at', value: '2020-01-01T00:00:00Z' },
    ]);
  });

  test('says at which character it stops being one', () => {
    const places: Record<string, number> = {
      'datum:x': 1,
      'data:x  OR data:y': 7,
      'data:x AND': 7,
    };
    for (const [query, place] of Object.entries(places)) {
      assert.throws(
        () => parseSearch(query),
        (error) =>
          error instanceof VaultError &&
          error.errors?.['query']?.[0]?.includes(`at character ${place},`) === true,
        query,
      );
    }
  });

  test('is read or refused at once, however it is written', () => {
    const parts = ['data:', 'x', '"', '\\', ' AND ', ' ', 'metadata.', ':', '(', 'a', '"\\"'];
    const check = fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 80 }), (chosen) => {
      const query = chosen.join('').slice(0, queryLengthMax);
      const started = process.threadCpuUsage();
      try {
        parseSearch(query);
      } catch (error) {
        assert.ok(error instanceof VaultError && error.code === 'validation_failed');
      }
      const { user, system } = process.threadCpuUsage(started);
      assert.ok(user + system < 250_000);
    });
    fc.assert(check, { numRuns: 3000 });
  });
});
