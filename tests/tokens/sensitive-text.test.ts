/** Finding what is sensitive in a text: nothing that is published as a test value is missed, and numbers pass. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { createProcessorTime } from '../../src/base/processor-time.ts';
import { findSensitive } from '../../src/tokens/sensitive-text.ts';
import { casesOf } from '../support/random.ts';

const kindsIn = async (text: string) =>
  (await findSensitive(text)).map(({ kind, value }) => [kind, value]);
const joined = (...parts: readonly string[]) => parts.join('');

suite('findSensitive', () => {
  test('finds card numbers of every network, however their digits are grouped', async () => {
    for (const [text, value] of [
      ['4242424242424242', '4242424242424242'],
      ['card:4242 4242 4242 4242.', '4242424242424242'],
      ['4242-4242-4242-4242 12/30', '4242424242424242'],
      ['no 3782 822463 10005', '378282246310005'],
      ['(5555 5555 5555 4444)', '5555555555554444'],
      ['12 5555555555554444 99', '5555555555554444'],
    ] as const) {
      assert.deepEqual(await kindsIn(text), [['card_number', value]], text);
    }
  });

  test('finds IBANs, social security numbers, and keys of known forms', async () => {
    const signed = joined(
      'eyJ',
      'hbGciOiJIUzI1NiJ9',
      '.',
      'eyJ',
      'zdWIiOiIxMjM0NTY3ODkwIn0',
      '.',
      'a'.repeat(43),
    );
    const keys = [
      joined('sk', '_test_', '4eC39HqLyjWDarjtT1zdp7dc'),
      joined('AKIA', 'IOSFODNN7EXAMPLE'),
      joined('ghp', '_', 'a1'.repeat(18)),
      joined('xoxb', '-1234567890-abcdefghij'),
      signed,
      joined('-----BEGIN ', 'PRIVATE KEY-----\nMIIB\n-----END ', 'PRIVATE KEY-----'),
    ];
    for (const key of keys) assert.deepEqual(await kindsIn(`KEY="${key}"\n`), [['key', key]], key);
    assert.deepEqual(await kindsIn('to GB29 NWBK 6016 1331 9268 19, and'), [
      ['iban', 'GB29NWBK60161331926819'],
    ]);
    assert.deepEqual(await kindsIn('DE89370400440532013000 AND'), [
      ['iban', 'DE89370400440532013000'],
    ]);
    assert.deepEqual(await kindsIn('SSN 219-09-9999'), [['social_security_number', '219-09-9999']]);
    assert.deepEqual(await kindsIn('SSN 219 09 9999'), [['social_security_number', '219-09-9999']]);
  });

  test('leaves other numbers and words as they are', async () => {
    for (const text of [
      '4242424242424241',
      'DE88370400440532013000',
      '2026-11-29 16:45:00',
      '000-12-3456 and 666-12-3456',
      'order 123456789',
      'f3a1c2e0-8b4d-4c6a-9e2f-0d1b2c3a4e5f',
      'sk-short',
      'x4242424242424242',
    ]) {
      assert.deepEqual(await kindsIn(text), [], text);
    }
  });

  test('finds each value among any text, at its place, and nothing twice', async () => {
    const value = fc.constantFrom(
      '4242 4242 4242 4242',
      'GB29 NWBK 6016 1331 9268 19',
      '219-09-9999',
    );
    const words = fc.stringMatching(/^[a-z ,.\n]{0,30}$/);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(words, value), { maxLength: 8 }), async (parts) => {
        const text = parts.map(([before, one]) => `${before};${one};`).join('');
        const found = await findSensitive(text);
        assert.deepEqual(
          found.map(({ start, end }) => text.slice(start, end)),
          parts.map(([, one]) => one),
        );
      }),
      { numRuns: casesOf({ all: 300, drawn: 60 }) },
    );
  });

  test('takes time that grows with the text, whatever the text is', async () => {
    for (const unit of [
      '1 ',
      '4-',
      'DE12 ',
      'sk-',
      '-----BEGIN PRIVATE KEY-----\n',
      'eyJa.',
      '1',
    ]) {
      const text = unit.repeat(65_536 / unit.length);
      const began = performance.now();
      await findSensitive(text);
      assert.ok(performance.now() - began < 5_000, unit);
    }
  });

  test('lets others have their turns between the places of a text', async (t) => {
    // Each look at the clock finds that others have waited long enough.
    let now = 0;
    t.mock.method(performance, 'now', () => {
      now += 10;
      return now;
    });
    let steps = 0;
    const payer = {
      charge: () => undefined,
      nextStep: () => {
        steps += 1;
        return undefined;
      },
      isAlone: false,
    };
    for (const unit of [
      '0 0 0 0 ',
      '4242 ',
      'DE12 ',
      'AB12 ',
      '219-09-9999 ',
      'AKIAIOSFODNN7EXAMPLE ',
    ]) {
      steps = 0;
      const text = unit.repeat(1_000);
      await new Promise<unknown>((resolve, reject) => {
        createProcessorTime().run(payer, () => void findSensitive(text).then(resolve, reject));
      });
      assert.ok(steps >= 250, `${steps} steps through ${unit}`);
    }
  });
});
