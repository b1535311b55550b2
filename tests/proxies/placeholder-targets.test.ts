/** What a placeholder of digits costs: the numbers of an application are made once, and for no number that is wrong. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseInstant } from '../../src/base/clock.ts';
import { type ApplicationId, newUuid, type TokenId } from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { createKeyring } from '../../src/keys/keyring.ts';
import { placeholderNumber } from '../../src/keys/placeholder.ts';
import { findingPlaceholders } from '../../src/proxies/egress/placeholder-targets.ts';
import type { EgressPolicy } from '../../src/rules/egress-policies.ts';

const random = pooledRandom();
const now = parseInstant(1_800_000_000_000);
const target = { tokenId: 'card' as TokenId, property: 'number' };

/** Each reader has its own, of the same content. */
const policiesWith = (...tokens: readonly string[]) => [{ tokens } as unknown as EgressPolicy];

suite('placeholders of digits', () => {
  test('are made once for an application, until its policies name other tokens', (t) => {
    const keyring = createKeyring(random);
    const application = newUuid<ApplicationId>(random);
    const { mock } = t.mock.method(keyring, 'secret');
    const number = placeholderNumber(keyring, application, target);
    const foundWith = (...tokens: readonly string[]) =>
      findingPlaceholders({ keyring, application, now, policies: policiesWith(...tokens) })(number);
    const found = foundWith('card', 'other');
    assert.deepEqual(found, target);
    assert.equal(foundWith('card', 'other'), found, 'the same object');
    assert.equal(foundWith('other'), undefined);
    assert.deepEqual(foundWith('card'), target);
    assert.equal(mock.callCount(), 1, 'their key is derived once');
  });

  test('are those of one application and one keyring', () => {
    const [keyring, application] = [createKeyring(random), newUuid<ApplicationId>(random)];
    const number = placeholderNumber(keyring, application, target);
    const holder = { keyring, application, now, policies: policiesWith('card') };
    assert.deepEqual(findingPlaceholders(holder)(number), target);
    const others = [
      { ...holder, keyring: createKeyring(random) },
      { ...holder, application: newUuid<ApplicationId>(random) },
    ];
    for (const other of others) assert.equal(findingPlaceholders(other)(number), undefined);
  });

  test('are not made for a number whose check digit is wrong', () => {
    const find = findingPlaceholders({
      keyring: createKeyring(random),
      application: newUuid<ApplicationId>(random),
      now,
      get policies(): readonly EgressPolicy[] {
        return assert.fail('the tokens of the policies are looked at');
      },
    });
    assert.equal(find('9999000000000000'), undefined);
    assert.throws(() => find('9999000000000004'), /are looked at/);
  });
});
