/** Every type of token: what it accepts, how it is kept, and its defaults. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { VaultError } from '../../src/base/errors.ts';
import type { Json } from '../../src/base/json.ts';
import { compileExpression, evaluateExpression } from '../../src/expressions/expression.ts';
import { compileTemplate, evaluateTemplate } from '../../src/expressions/template.ts';
import {
  parseTokenType,
  summaryOf,
  type TokenTypeName,
  tokenTypes,
} from '../../src/tokens/contents/token-types.ts';

const number = '4242424242424242';
const names = Object.keys(tokenTypes) as TokenTypeName[];

/** One row per type: valid data with what is kept, its masked form, fingerprint and indexes. */
const types: Readonly<
  Record<TokenTypeName, { data: Json; mask: Json; fingerprint: string; indexes: Json[] }>
> = {
  token: { data: { b: 1, a: [2] }, mask: null, fingerprint: '{"b":1,"a":[2]}', indexes: [] },
  card: {
    data: { number, expiration_month: 12, expiration_year: 2030, cvc: '123' },
    mask: { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2030 },
    fingerprint: number,
    indexes: [],
  },
  network_token: {
    data: { number },
    mask: { number: 'XXXXXXXXXXXX4242' },
    fingerprint: number,
    indexes: [],
  },
  bank: {
    data: { routing_number: '021000021', account_number: '1234567890' },
    mask: { routing_number: '021000021', account_number: 'XXXXXX7890' },
    fingerprint: '1234567890|021000021',
    indexes: [],
  },
  card_number: {
    data: '36227206271667',
    mask: 'XXXXXXXXXX1667',
    fingerprint: '36227206271667',
    indexes: [],
  },
  us_bank_account_number: {
    data: '1234567890',
    mask: 'XXXXXX7890',
    fingerprint: '1234567890',
    indexes: [],
  },
  us_bank_routing_number: {
    data: '021000021',
    mask: 'XXXXX0021',
    fingerprint: '021000021',
    indexes: [],
  },
  social_security_number: {
    data: '123-45-6789',
    mask: 'XXX-XX-6789',
    fingerprint: '123456789',
    indexes: ['123-45-6789', '123456789', '6789'],
  },
  employer_id_number: {
    data: '12-3456789',
    mask: 'XX-XXX6789',
    fingerprint: '123456789',
    indexes: ['12-3456789', '123456789', '6789'],
  },
};

describe('the defaults of a type', () => {
  for (const name of names) {
    it(`${name} is kept, masked, fingerprinted and indexed as published`, () => {
      const { data, mask, fingerprint, indexes } = types[name];
      const type = tokenTypes[name];
      assert.deepEqual(type.parseData(data), data);
      const evaluate = (text: string) => evaluateExpression(compileExpression(text), { data });
      assert.equal(evaluate(type.fingerprint), fingerprint);
      assert.deepEqual(type.searchIndexes.map(evaluate), indexes);
      const masked =
        type.mask === undefined
          ? null
          : evaluateTemplate(compileTemplate(type.mask, 'mask'), { data });
      assert.deepEqual(masked, mask);
    });
  }

  it('live in the published containers', () => {
    assert.deepEqual(Object.fromEntries(names.map((name) => [name, tokenTypes[name].container])), {
      token: '/general/high/',
      card: '/pci/high/',
      network_token: '/pci/high/',
      bank: '/bank/high/',
      card_number: '/pci/high/',
      us_bank_account_number: '/bank/high/',
      us_bank_routing_number: '/bank/low/',
      social_security_number: '/pii/high/',
      employer_id_number: '/pii/high/',
    });
  });

  it('are found by name, and by nothing else', () => {
    for (const name of names) assert.equal(parseTokenType(name), name);
    for (const name of ['', 'Card', 'cards', 'toString', '__proto__', 'constructor']) {
      assert.equal(parseTokenType(name), undefined);
    }
  });
});

describe('a card', () => {
  const parse = tokenTypes.card.parseData;

  it('is kept in one order and one form', () => {
    const sent = { cvc: 123, expiration_year: '2030', expiration_month: '02', number };
    const kept = { number, expiration_month: 2, expiration_year: 2030, cvc: '123' };
    assert.equal(JSON.stringify(parse(sent)), JSON.stringify(kept));
  });

  it('needs no more than a number; null says nothing', () => {
    assert.deepEqual(parse({ number }), { number });
    assert.deepEqual(parse({ number, cvc: null, expiration_month: null }), { number });
  });

  it('may be of 13 to 19 digits and past its expiry', () => {
    for (const valid of ['4222222222222', '6304000000000000000']) {
      assert.deepEqual(parse({ number: valid }), { number: valid });
    }
    assert.ok(parse({ number, expiration_month: 1, expiration_year: 2000 }));
    assert.ok(parse({ number, expiration_month: 12, expiration_year: 2099 }));
  });

  const refused: readonly (readonly [string, Json, string[]])[] = [
    ['no object', number, ['data']],
    ['a list', [number], ['data']],
    ['null', null, ['data']],
    ['no number', {}, ['data.number']],
    ['a number that is a number', { number: 4242424242424242 }, ['data.number']],
    ['a number with separators', { number: '4242-4242-4242-4242' }, ['data.number']],
    ['a number that fails Luhn', { number: '4242424242424241' }, ['data.number']],
    ['12 digits', { number: '424242424242' }, ['data.number']],
    ['20 digits', { number: '42424242424242424242' }, ['data.number']],
    ['month 0', { number, expiration_month: 0 }, ['data.expiration_month']],
    ['month 13', { number, expiration_month: 13 }, ['data.expiration_month']],
    ['half a month', { number, expiration_month: 1.5 }, ['data.expiration_month']],
    ['year 1999', { number, expiration_year: 1999 }, ['data.expiration_year']],
    ['year 2100', { number, expiration_year: 2100 }, ['data.expiration_year']],
    ['a year of two digits', { number, expiration_year: 30 }, ['data.expiration_year']],
    ['a code of two digits', { number, cvc: '12' }, ['data.cvc']],
    ['a code of five digits', { number, cvc: '12345' }, ['data.cvc']],
    ['a numeric code that lost its zeros', { number, cvc: 12 }, ['data.cvc']],
    ['a code of letters', { number, cvc: 'abc' }, ['data.cvc']],
    ['another property', { number, name: 'x' }, ['data.name']],
    ['a property named by a number', { [number]: 'x', number }, ['data']],
    [
      'everything wrong',
      { number: 'x', expiration_month: 'x', cvc: [], other: 1 },
      ['data.number', 'data.expiration_month', 'data.cvc', 'data.other'],
    ],
  ];
  for (const [what, data, paths] of refused) {
    it(`with ${what} is refused at ${paths.join(', ')}`, () => {
      assert.deepEqual(pathsRefused('card', data), paths);
      assert.deepEqual(pathsRefused('network_token', data), paths);
    });
  }
});

describe('an account', () => {
  const account = { routing_number: '021000021', account_number: '00001' };

  it('may have 3 to 17 digits', () => {
    for (const valid of ['123', '12345678901234567']) {
      assert.ok(tokenTypes.bank.parseData({ ...account, account_number: valid }));
      assert.equal(tokenTypes.us_bank_account_number.parseData(valid), valid);
    }
    for (const other of ['12', '123456789012345678', '12a', 123]) {
      assert.deepEqual(pathsRefused('bank', { ...account, account_number: other }), [
        'data.account_number',
      ]);
      assert.deepEqual(pathsRefused('us_bank_account_number', other), ['data']);
    }
  });

  it('has a routing number of nine digits that pass the ABA check', () => {
    for (const other of ['021000022', '02100002', '0210000210', '', 21000021]) {
      assert.deepEqual(pathsRefused('bank', { ...account, routing_number: other }), [
        'data.routing_number',
      ]);
      assert.deepEqual(pathsRefused('us_bank_routing_number', other), ['data']);
    }
  });

  it('needs both numbers and nothing else', () => {
    assert.deepEqual(pathsRefused('bank', {}), ['data.routing_number', 'data.account_number']);
    assert.deepEqual(pathsRefused('bank', { ...account, holder: 'x' }), ['data.holder']);
    assert.deepEqual(pathsRefused('bank', 'x'), ['data']);
  });
});

describe('a number of nine digits', () => {
  it('may be written with hyphens and is kept as written', () => {
    for (const name of ['social_security_number', 'employer_id_number'] as const) {
      for (const valid of ['123456789', '123-45-6789', '12-3456789']) {
        assert.equal(tokenTypes[name].parseData(valid), valid);
      }
      for (const other of ['12345678', '1234567890', '123 45 6789', '12345678a', 123456789]) {
        assert.deepEqual(pathsRefused(name, other), ['data']);
      }
    }
  });
});

describe('card_number', () => {
  it('is 13 to 19 digits that pass the Luhn check', () => {
    assert.equal(tokenTypes.card_number.parseData(number), number);
    for (const other of ['4242424242424241', '4242 4242 4242 4242', 4242424242424242, {}]) {
      assert.deepEqual(pathsRefused('card_number', other), ['data']);
    }
  });
});

describe('token', () => {
  it('may be any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (data) => {
        assert.equal(tokenTypes.token.parseData(data as Json), data);
      }),
    );
  });
});

describe('what a token shows of its data', () => {
  it('of a card are the issuer digits, the last four, the expiry and the brand', () => {
    const shown = { bin: '42424242', last4: '4242', brand: 'visa' };
    const expiry = { expiration_month: 12, expiration_year: 2030 };
    assert.deepEqual(summaryOf('card', { number, ...expiry, cvc: '123' }), {
      card: { ...shown, ...expiry },
    });
    assert.deepEqual(summaryOf('network_token', { number }), { network_token: shown });
    assert.deepEqual(summaryOf('card_number', number), { card: shown });
  });

  it('of a short number are six issuer digits, and no brand when none is known', () => {
    assert.deepEqual(summaryOf('card_number', '378282246310005'), {
      card: { bin: '378282', last4: '0005', brand: 'american-express' },
    });
    assert.deepEqual(summaryOf('card_number', '0000000000000000'), {
      card: { bin: '00000000', last4: '0000' },
    });
  });

  it('of an account are the routing number and the last four', () => {
    const data = { routing_number: '021000021', account_number: '1234567890' };
    assert.deepEqual(summaryOf('bank', data), {
      bank: { routing_number: '021000021', account_number_last4: '7890' },
    });
  });

  it('of any other type is nothing', () => {
    const shown = ['card', 'network_token', 'card_number', 'bank'];
    for (const name of names.filter((one) => !shown.includes(one))) {
      assert.deepEqual(summaryOf(name, types[name].data), {});
    }
  });
});

describe('every type', () => {
  it('keeps what it kept before, and refuses without repeating a value', () => {
    const sentinel = 'S3NT1NEL';
    const scalar = fc.oneof(
      fc.constantFrom(number, '123', 12, 2030, '021000021', null, sentinel, `${sentinel}4242`),
      fc.integer(),
    );
    const properties = fc.constantFrom(
      ...['number', 'expiration_month', 'expiration_year', 'cvc', 'routing_number'],
      ...['account_number', 'other', `x${sentinel}`, '__proto__'],
    );
    const data = fc.oneof(
      scalar,
      fc
        .array(fc.tuple(properties, scalar), { maxLength: 5 })
        .map((members) => Object.fromEntries(members)),
      fc.array(scalar, { maxLength: 2 }),
    );
    const property = fc.property(fc.constantFrom(...names), data, (name, given) => {
      try {
        const kept = tokenTypes[name].parseData(given as Json);
        assert.deepEqual(tokenTypes[name].parseData(kept), kept);
        summaryOf(name, kept);
      } catch (error) {
        assert.ok(error instanceof VaultError);
        assert.ok(!JSON.stringify(error.errors).includes(sentinel));
      }
    });
    fc.assert(property, { numRuns: 3000 });
  });
});

function pathsRefused(name: TokenTypeName, data: Json): string[] {
  try {
    tokenTypes[name].parseData(data);
  } catch (error) {
    assert.ok(error instanceof VaultError);
    assert.equal(error.code, 'validation_failed');
    return Object.keys(error.errors ?? {});
  }
  return assert.fail('the data was accepted');
}
