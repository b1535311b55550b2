/** Fingerprints are computed in one place, where they are counted: no other code has the key to them. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { committedPaths, readSource } from '../support/source.ts';

const place = 'src/tokens/guesses/guesses.ts';

test('no other file of the source takes the key of fingerprints', () => {
  const taking = committedPaths()
    .filter((path) => path.startsWith('src/') && path.endsWith('.ts'))
    .filter((path) => /\bsecret\(\s*['"`]fingerprint/.test(readSource(path).text));
  assert.deepEqual(taking, [place]);
});
