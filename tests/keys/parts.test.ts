/** Parts: different lists never share an encoding. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { encodeParts } from '../../src/keys/parts.ts';

/** Any JavaScript string, lone surrogates included. */
const text = fc
  .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 6 })
  .map((units) => String.fromCharCode(...units));

suite('encodeParts', () => {
  test('gives the documented bytes', () => {
    assert.equal(
      encodeParts(['aé', '', '€']).toString('hex'),
      '000000046100e9000000000000000002ac20',
    );
    assert.equal(encodeParts([]).length, 0);
  });

  test('can be read back as the same list, so no two lists share an encoding', () => {
    const check = fc.property(fc.array(text), (parts) => {
      assert.deepEqual(decodeParts(encodeParts(parts)), parts);
    });
    fc.assert(check, { numRuns: 2000 });
  });
});

function decodeParts(encoded: Buffer): string[] {
  const parts: string[] = [];
  for (let start = 0; start < encoded.length; ) {
    const end = start + 4 + encoded.readUInt32BE(start);
    parts.push(encoded.toString('utf16le', start + 4, end));
    start = end;
  }
  return parts;
}
