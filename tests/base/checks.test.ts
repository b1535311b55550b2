/** Checks: every number below is one that a network or processor publishes for testing. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  abaAssignable,
  abaValid,
  type CardBrand,
  cardBin,
  cardBrand,
  ibanValid,
  luhnValid,
} from '../../src/base/checks.ts';

const testNumbers: Record<CardBrand, readonly string[]> = {
  'american-express': ['378282246310005', '371449635398431', '378734493671000', '340000000000009'],
  'diners-club': ['30569309025904', '38520000023237', '36227206271667', '38000000000006'],
  discover: ['6011111111111117', '6011000990139424', '6011000000000012'],
  elo: ['5066991111111118', '6362970000457013', '6505050000001091'],
  hipercard: ['6062828888666688', '6062826786276634', '6062825624254001'],
  jcb: ['3530111333300000', '3566002020360505', '3088000000000017', '3337000000200004'],
  mastercard: ['5555555555554444', '5105105105105100', '2223003122003222', '2720990000000015'],
  mir: ['2200000000000004', '2202474301322987', '2201382000000013'],
  unionpay: ['6200000000000005', '6221260000000000', '6250941006528599', '8171999900000018'],
  visa: ['4111111111111111', '4012888888881881', '4222222222222', '4111141011111111116'],
};
const allTestNumbers = Object.values(testNumbers).flat();

suite('luhnValid', () => {
  test('accepts every published test number', () => {
    for (const number of allTestNumbers) assert.equal(luhnValid(number), true, number);
  });

  test('rejects every published test number with any one digit changed', () => {
    for (const number of allTestNumbers) {
      for (let index = 0; index < number.length; index += 1) {
        const digit = (Number(number[index]) + 1) % 10;
        const changed = number.slice(0, index) + digit + number.slice(index + 1);
        assert.equal(luhnValid(changed), false, changed);
      }
    }
  });

  test('rejects what is not digits alone', () => {
    const texts = ['', ' ', '4111 1111 1111 1111', '4111-1111-1111-1111', '４１１１', '0x0', '1e1'];
    for (const text of texts) assert.equal(luhnValid(text), false, text);
  });
});

suite('abaValid', () => {
  test('accepts published routing numbers of Federal Reserve districts', () => {
    const published = [
      '021000021',
      '021000089',
      '011401533',
      '110000000',
      '091000019',
      '322271627',
    ];
    for (const number of published) assert.equal(abaValid(number), true, number);
  });

  test('rejects any one digit changed', () => {
    for (let index = 0; index < 9; index += 1) {
      for (let add = 1; add < 10; add += 1) {
        const digit = (Number('021000021'[index]) + add) % 10;
        const changed = `${'021000021'.slice(0, index)}${digit}${'021000021'.slice(index + 1)}`;
        assert.equal(abaValid(changed), false, changed);
      }
    }
  });

  test('rejects other lengths and other characters', () => {
    const texts = [
      '',
      '02100002',
      '0210000210',
      '02100002a',
      ' 21000021',
      '021-00021',
      '021000021\n',
    ];
    for (const text of texts) assert.equal(abaValid(text), false, JSON.stringify(text));
  });
});

suite('abaAssignable', () => {
  /** A number that passes the check and begins with these two digits. */
  const numberOf = (prefix: number) => {
    const begun = `${String(prefix).padStart(2, '0')}000000`;
    const numbers = Array.from({ length: 10 }, (_, digit) => `${begun}${digit}`);
    return numbers.find(abaValid) ?? '';
  };

  test('accepts the prefixes of the Federal Reserve and no other', () => {
    const assigned = Array.from({ length: 100 }, (_, prefix) => prefix).filter((prefix) =>
      abaAssignable(numberOf(prefix)),
    );
    const ranges = [0, 12, 21, 32, 61, 72, 80, 80];
    const edges = assigned.filter(
      (prefix) => !assigned.includes(prefix - 1) || !assigned.includes(prefix + 1),
    );
    assert.deepEqual([...edges, 80], ranges);
    assert.equal(assigned.length, 13 + 12 + 12 + 1);
  });

  test('rejects a number that fails the check, whatever its prefix', () => {
    assert.equal(abaAssignable('021000021'), true);
    assert.equal(abaAssignable('021000020'), false);
  });
});

suite('cardBrand', () => {
  for (const [brand, published] of Object.entries(testNumbers)) {
    test(`names ${brand} for its published test numbers`, () => {
      for (const number of published) assert.equal(cardBrand(number), brand, number);
    });
  }

  test('lets the longest prefix win over a shorter one of another brand', () => {
    assert.deepEqual(['401178', '401177'].map(cardBrand), ['elo', 'visa']);
    assert.deepEqual(['627780', '627781'].map(cardBrand), ['elo', 'unionpay']);
    assert.deepEqual(['650031', '650034'].map(cardBrand), ['elo', 'discover']);
    assert.deepEqual(['384100', '385000'].map(cardBrand), ['hipercard', 'diners-club']);
  });

  test('ends every range where it is published to end', () => {
    const edges = {
      mastercard: ['222099', '222100', '272099', '272100'],
      mir: ['219999', '220000', '220499', '220500'],
      jcb: ['352799', '352800', '358999', '359000'],
    };
    for (const [brand, numbers] of Object.entries(edges)) {
      assert.deepEqual(numbers.map(cardBrand), [null, brand, brand, null]);
    }
  });

  test('is null for a number of no listed brand, and for one too short to tell', () => {
    for (const number of ['', '5', '6', '11111111111111116', '9999999999999995', 'constructor']) {
      assert.equal(cardBrand(number), null, number);
    }
  });
});

suite('cardBin', () => {
  test('is 6 digits below 16 digits and 8 from there on', () => {
    assert.equal(cardBin('378282246310005'), '378282');
    assert.equal(cardBin('4111111111111111'), '41111111');
    assert.equal(cardBin('4111141011111111116'), '41111410');
  });
});

suite('ibanValid', () => {
  const published = ['DE89370400440532013000', 'GB29NWBK60161331926819', 'NO9386011117947'];

  test('accepts the examples of the registry, and rejects them with any digit changed', () => {
    for (const iban of published) {
      assert.equal(ibanValid(iban), true, iban);
      for (let index = 2; index < iban.length; index += 1) {
        if (!/[0-9]/.test(iban[index] ?? '')) continue;
        const changed =
          iban.slice(0, index) + ((Number(iban[index]) + 1) % 10) + iban.slice(index + 1);
        assert.equal(ibanValid(changed), false, changed);
      }
    }
  });

  test('rejects countries without IBANs, and other lengths than a country has', () => {
    assert.equal(ibanValid('US89370400440532013000'), false);
    assert.equal(ibanValid('DE8937040044053201300'), false);
    assert.equal(ibanValid('DE89 3704 0044 0532 0130 00'), false);
  });
});
