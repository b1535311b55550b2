/** A placeholder means its target to one application of one tenant, and nothing to anybody else. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { cardBrand, luhnValid } from '../../src/base/checks.ts';
import { parseInstant } from '../../src/base/clock.ts';
import { type ApplicationId, newUuid, type TokenId } from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { createKeyring } from '../../src/keys/keyring.ts';
import {
  fitsPlaceholder,
  newPlaceholder,
  openPlaceholder,
  placeholderNumber,
  placeholderPattern,
} from '../../src/keys/placeholder.ts';

const random = pooledRandom();
const keyring = createKeyring(random);
const application = newUuid<ApplicationId>(random);
const target = {
  tokenId: newUuid<TokenId>(random),
  property: 'number',
  expiresAt: parseInstant(1_900_000_000_000),
};

const found = (text: string) => Array.from(text.matchAll(placeholderPattern), ([one]) => one);

suite('a placeholder', () => {
  const placeholder = newPlaceholder(keyring, application, { ...target, random });

  test('opens to what it was made for, for its application and tenant alone', () => {
    assert.deepEqual(openPlaceholder(keyring, application, placeholder), target);
    assert.equal(
      openPlaceholder(keyring, newUuid<ApplicationId>(random), placeholder),
      undefined,
      'another application',
    );
    assert.equal(
      openPlaceholder(createKeyring(random), application, placeholder),
      undefined,
      'another tenant',
    );
  });

  test('cannot be altered in any character, cut, or made longer', () => {
    for (let at = 3; at < placeholder.length; at += 7) {
      const other = placeholder[at] === '7' ? '8' : '7';
      const altered = placeholder.slice(0, at) + other + placeholder.slice(at + 1);
      assert.equal(openPlaceholder(keyring, application, altered), undefined, String(at));
    }
    for (const text of ['sr_', placeholder.slice(0, -1), `${placeholder}1`, 'sr_0OIl']) {
      assert.equal(openPlaceholder(keyring, application, text), undefined, text);
    }
  });

  test('shows neither the token nor that two are for one token', () => {
    const again = newPlaceholder(keyring, application, { ...target, random });
    const shared = [...again].filter((character, at) => placeholder[at] === character).length;
    assert.ok(shared < 20, `${shared} characters are the same`);
    assert.ok(!placeholder.includes(target.tokenId));
  });

  test('is found in a text, and no part of a longer word is taken for one', () => {
    assert.deepEqual(found(`Bearer ${placeholder}`), [placeholder]);
    assert.deepEqual(found(`"${placeholder}","${placeholder}"`), [placeholder, placeholder]);
    assert.deepEqual(found('sr_short'), []);
    assert.deepEqual(found(`${placeholder}0`), []);
  });

  test('has a limit of the length of its token id', () => {
    const withId = (length: number) => ({
      ...target,
      tokenId: 'i'.repeat(length) as TokenId,
    });
    assert.ok(fitsPlaceholder(withId(400)));
    assert.ok(!fitsPlaceholder({ ...target, tokenId: 'é'.repeat(400) as TokenId }));
    const long = newPlaceholder(keyring, application, { ...withId(400), random });
    assert.deepEqual(found(long), [long]);
  });
});

suite('a placeholder of digits', () => {
  const number = placeholderNumber(keyring, application, target);

  test('passes for a card number of no scheme', () => {
    assert.match(number, /^9999\d{12}$/);
    assert.ok(luhnValid(number));
    assert.equal(cardBrand(number), null);
  });

  test('is always the same one for a target, and another for every other', () => {
    assert.equal(placeholderNumber(keyring, application, target), number);
    const others = [
      placeholderNumber(createKeyring(random), application, target),
      placeholderNumber(keyring, newUuid<ApplicationId>(random), target),
      placeholderNumber(keyring, application, { ...target, property: undefined }),
      placeholderNumber(keyring, application, { ...target, tokenId: 'other' as TokenId }),
    ];
    assert.equal(new Set([number, ...others]).size, 5);
  });

  test('is found in a text unless it is part of a longer number', () => {
    assert.deepEqual(found(`number=${number}&x=1`), [number]);
    assert.deepEqual(found(`1${number}`), []);
    assert.deepEqual(found(`${number}1`), []);
  });
});
