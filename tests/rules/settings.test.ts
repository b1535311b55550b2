/** Quotas as an operator writes them, and settings as a tenant does. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { VaultError } from '../../src/base/errors.ts';
import {
  parseQuota,
  parseSettings,
  quotaRows,
  quotasOf,
  settingRows,
  settingsOf,
} from '../../src/rules/settings.ts';

const errorsOf = (run: () => unknown) => {
  try {
    run();
  } catch (error) {
    if (error instanceof VaultError) return error.errors;
    throw error;
  }
  return undefined;
};

suite('quotas', () => {
  test('a count is a whole number within its limits, both of them included', () => {
    assert.deepEqual(parseQuota('tokenize_limit', '1'), { tokenize_limit: 1 });
    assert.deepEqual(parseQuota('tokenize_limit', '100000'), { tokenize_limit: 100_000 });
    for (const text of ['0', '100001', '', '-1', '1.5', '1e3', '2h', ' 5', '5 ']) {
      assert.deepEqual(Object.keys(errorsOf(() => parseQuota('tokenize_limit', text)) ?? {}), [
        'tokenize_limit',
      ]);
    }
  });

  test('a duration may be written in milliseconds, seconds, minutes, hours and days', () => {
    const durations = { '500': 500, '500ms': 500, '90s': 90_000, '15m': 900_000, '2h': 7_200_000 };
    for (const [text, value] of Object.entries(durations)) {
      assert.deepEqual(parseQuota('cvc_retention', text), { cvc_retention: value });
    }
    assert.deepEqual(parseQuota('log_retention', '400d'), { log_retention: 34_560_000_000 });
    for (const [name, text] of [
      ['cvc_retention', '2w'],
      ['cvc_retention', '366d'],
      ['log_retention', '23h'],
      ['token_intent_retention', '49h'],
    ] as const) {
      const errors = errorsOf(() => parseQuota(name, text));
      assert.match(errors?.[name]?.[0] ?? '', /90s, 15m, 2h or 7d/);
    }
  });

  test('one that is none is refused with the names there are', () => {
    for (const name of ['tokenise_limit', 'constructor']) {
      const errors = errorsOf(() => parseQuota(name, '5'));
      assert.match(errors?.[name]?.[0] ?? '', /the quotas are tokenize_limit/);
    }
  });

  test('every default is one that could be set', () => {
    for (const [name, { default: value }] of Object.entries(quotaRows)) {
      assert.deepEqual(parseQuota(name, String(value)), { [name]: value });
    }
    assert.equal(quotasOf('{"tokenize_limit":7}').tokenize_limit, 7);
  });
});

suite('settings', () => {
  test('every default is one that could be set, and what is stored goes before it', () => {
    for (const [name, { default: value }] of Object.entries(settingRows)) {
      assert.deepEqual(parseSettings({ [name]: value }), { [name]: value });
    }
    assert.equal(settingsOf('{"deduplicate_tokens":"true"}').deduplicate_tokens, 'true');
  });

  test('an unknown setting and another value are both named', () => {
    const errors = errorsOf(() => parseSettings({ fingerprint_tokens: 'TRUE', toString: 'x' }));
    assert.deepEqual(Object.keys(errors ?? {}), [
      'settings.fingerprint_tokens',
      'settings.toString',
    ]);
  });
});
