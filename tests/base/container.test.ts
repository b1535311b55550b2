/** Containers: one spelling for each, and no letters that only look like others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseContainer } from '../../src/base/container.ts';

test('upper and lower case are one container', () => {
  assert.equal(parseContainer('/PCI/High-1/'), '/pci/high-1/');
  assert.equal(parseContainer('/'), '/');
});

test('only ASCII letters are letters, also those whose lower case is ASCII', () => {
  for (const letter of ['\u212a', '\u0130', '\u017f', '\uff4b', '\u00e9']) {
    assert.equal(parseContainer(`/${letter}/`), undefined, letter);
    assert.equal(parseContainer(`/bac${letter}up/`), undefined, letter);
  }
});
