/** What a placeholder of digits costs: a number is searched once, and no wrong one is. No search waits for others. */
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
const now = () => parseInstant(1_800_000_000_000);
const target = { tokenId: 'card' as TokenId, property: 'number' };

/** Each reader has its own, of the same content. */
const policiesWith = (...tokens: readonly string[]) => [{ tokens } as unknown as EgressPolicy];

suite('placeholders of digits', () => {
  test('are found once for an application, until its policies name other tokens', async (t) => {
    const keyring = createKeyring(random);
    const application = newUuid<ApplicationId>(random);
    const { mock } = t.mock.method(keyring, 'secret');
    const number = placeholderNumber(keyring, application, target);
    const foundWith = async (...tokens: readonly string[]) => {
      const holder = { keyring, application, now, policies: policiesWith(...tokens) };
      return (await findingPlaceholders(holder, [number]))(number);
    };
    const found = await foundWith('card', 'other');
    assert.deepEqual(found, target);
    assert.equal(await foundWith('card', 'other'), found, 'the same object');
    assert.equal(await foundWith('more', 'card'), found, 'the same object');
    assert.equal(await foundWith('other'), undefined);
    assert.deepEqual(await foundWith('card'), target);
    assert.equal(mock.callCount(), 1, 'their key is derived once');
  });

  test('are those of one application and one keyring', async () => {
    const [keyring, application] = [createKeyring(random), newUuid<ApplicationId>(random)];
    const number = placeholderNumber(keyring, application, target);
    const holder = { keyring, application, now, policies: policiesWith('card') };
    const foundBy = async (one: typeof holder) =>
      (await findingPlaceholders(one, ['', number]))(number);
    assert.deepEqual(await foundBy(holder), target);
    const others = [
      { ...holder, keyring: createKeyring(random) },
      { ...holder, application: newUuid<ApplicationId>(random) },
    ];
    for (const other of others) assert.equal(await foundBy(other), undefined);
  });

  test('are not made for a number whose check digit is wrong', async () => {
    const holder = {
      keyring: createKeyring(random),
      application: newUuid<ApplicationId>(random),
      now,
      get policies(): readonly EgressPolicy[] {
        return assert.fail('the tokens of the policies are looked at');
      },
    };
    const find = await findingPlaceholders(holder, ['9999000000000000', 'and 99990000000000041']);
    assert.equal(find('9999000000000000'), undefined);
    await assert.rejects(findingPlaceholders(holder, ['9999000000000004']), /are looked at/);
  });

  test('of the longest policies let others have their turn while they are made', async () => {
    const [keyring, application] = [createKeyring(random), newUuid<ApplicationId>(random)];
    const number = placeholderNumber(keyring, application, target);
    const tokens = Array.from({ length: 5_000 }, (_, at) => `token ${at}`);
    const holder = { keyring, application, now, policies: policiesWith(...tokens, 'card') };
    let turns = 0;
    let isMade = false;
    const count = () => {
      turns += 1;
      if (!isMade) setImmediate(count);
    };
    setImmediate(count);
    const find = await findingPlaceholders(holder, [number]);
    isMade = true;
    assert.deepEqual(find(number), target);
    assert.ok(turns > 5, `${turns} turns`);
  });

  test('are searched for one caller while others of its tenant search for thousands', async () => {
    const [keyring, application] = [createKeyring(random), newUuid<ApplicationId>(random)];
    const number = placeholderNumber(keyring, application, target);
    const unknown = placeholderNumber(keyring, application, { ...target, property: 'none' });
    const ended: string[] = [];
    const search = async (name: string, policies: readonly EgressPolicy[], sought: string) => {
      const holder = { keyring, application, now, policies };
      const find = await findingPlaceholders(holder, [sought]);
      ended.push(name);
      return find(sought);
    };
    const tokens = Array.from({ length: 5_000 }, (_, at) => `token ${at}`);
    const flood = Array.from({ length: 3 }, (_, at) =>
      search('flood', policiesWith(...tokens, `last ${at}`), unknown),
    );
    assert.deepEqual(await search('agent', policiesWith('card'), number), target);
    assert.deepEqual(ended, ['agent']);
    assert.deepEqual(await Promise.all(flood), [undefined, undefined, undefined]);
  });
});
