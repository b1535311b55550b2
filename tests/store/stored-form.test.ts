/** What the database holds of ids and digests leads back to the same text, and sorts as ids do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseTokenId } from '../../src/base/ids.ts';
import { afterPrefix } from '../../src/store/queries/text-patterns.ts';
import { idBytes, idRanges, storedForm, valueOfStored } from '../../src/store/stored-form.ts';

const uuid = fc.uuid();
const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 });
/** Texts that look nearly like a UUID, and ones that begin like others. */
const id = fc.oneof(
  uuid,
  text,
  uuid.map((one) => one.toUpperCase()),
  uuid.map((one) => one.slice(0, -1)),
  uuid.map((one) => one.replaceAll('-', '')),
  fc.constantFrom('card_1', 'card_12', 'ca'),
);

test('every id is read back as it was stored, and a UUID takes seventeen bytes', () => {
  fc.assert(
    fc.property(id, (one) => {
      assert.equal(valueOfStored('id', storedForm('id', one)), one);
    }),
  );
  assert.equal(idBytes('00000000-0000-4000-8000-000000000001').length, 17);
});

test('what the vault never stored is read as no id, and leads back to itself', () => {
  const asText = (text: string) => Buffer.from(`\u0002${text}`);
  const ids = uuid.map((one) => Buffer.from(idBytes(one)));
  const foreign = fc.oneof(
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    uuid.map(asText),
    ids.map((bytes) => bytes.subarray(0, -1)),
    ids.map((bytes) => Buffer.concat([bytes, bytes])),
    fc
      .constantFrom('', '\u0001', '\u0003', '?x', '?x02', '?tcard_1')
      .map((one) => Buffer.from(one)),
    fc.constantFrom('?x', '?x02', '?tcard_1').map(asText),
  );
  fc.assert(
    fc.property(foreign, (bytes) => {
      const read = valueOfStored('id', bytes);
      assert.deepEqual(storedForm('id', read), bytes);
    }),
    { numRuns: 2000 },
  );
  for (const one of fc.sample(uuid, 100)) {
    for (const stored of [asText(one), one, 12]) {
      const read = String(valueOfStored('id', stored));
      assert.equal(parseTokenId(read), undefined, read);
      if (stored !== 12) assert.deepEqual(storedForm('id', read), stored);
    }
  }
});

test('no two ids share their bytes, and ids of one form keep their order', () => {
  fc.assert(
    fc.property(id, id, (one, other) => {
      const order = Buffer.compare(idBytes(one), idBytes(other));
      assert.equal(order === 0, one === other);
      const isUuid = (bytes: Buffer) => bytes[0] === 1;
      if (isUuid(idBytes(one)) !== isUuid(idBytes(other))) return;
      assert.equal(order, Buffer.compare(Buffer.from(one), Buffer.from(other)));
    }),
  );
});

test('the ranges of a prefix hold exactly the ids that begin with it', () => {
  const cut = fc.tuple(id, fc.nat(40)).map(([one, length]) => [...one].slice(0, length).join(''));
  fc.assert(
    fc.property(id, fc.oneof(cut, text), (one, prefix) => {
      if (prefix === '' || !prefix.isWellFormed()) return;
      const bytes = idBytes(one);
      const isIn = idRanges(prefix, afterPrefix(prefix)).some(
        ({ from, to }) =>
          Buffer.compare(bytes, from) >= 0 && (to === undefined || Buffer.compare(bytes, to) < 0),
      );
      assert.equal(isIn, one.startsWith(prefix), JSON.stringify([one, prefix]));
    }),
    { numRuns: 2000 },
  );
});

test('a digest in base64url is stored as its bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 32 }), (bytes) => {
      const digest = Buffer.from(bytes).toString('base64url');
      const stored = storedForm('digest', digest);
      assert.ok(stored instanceof Uint8Array && stored.length === bytes.length);
      assert.equal(valueOfStored('digest', stored), digest);
    }),
  );
});
