/** Dates: which texts are read, as which moment, and how moments are written. */
import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import fc from 'fast-check';
import { Settings } from 'luxon';
import { latestInstant, parseInstant } from '../../src/base/clock.ts';
import { formatInstant, formatTimestamp, parseExpiry } from '../../src/base/dates.ts';

/** Text, moment in UTC, offset in minutes. */
const accepted: Record<string, { utc: string; offsetMinutes?: number }> = {
  '2030-04-23T13:24:28Z': { utc: '2030-04-23T13:24:28.000Z' },
  '2030-04-23T17:24:28-04:00': { utc: '2030-04-23T21:24:28.000Z', offsetMinutes: -240 },
  '2030-04-23T17:24:28+05:45': { utc: '2030-04-23T11:39:28.000Z', offsetMinutes: 345 },
  '2030-04-23T17:24:28-00:00': { utc: '2030-04-23T17:24:28.000Z' },
  '2030-04-23T17:24:28-00:30': { utc: '2030-04-23T17:54:28.000Z', offsetMinutes: -30 },
  '2030-04-23T17:24:28+14:00': { utc: '2030-04-23T03:24:28.000Z', offsetMinutes: 840 },
  '2030-04-23T13:24Z': { utc: '2030-04-23T13:24:00.000Z' },
  '2030-04-23T13:24+01:00': { utc: '2030-04-23T12:24:00.000Z', offsetMinutes: 60 },
  '2030-04-23T13:24:28.1Z': { utc: '2030-04-23T13:24:28.100Z' },
  '2030-04-23T13:24:28.0199999Z': { utc: '2030-04-23T13:24:28.019Z' },
  '2030-04-23T13:24:28.1234567+02:00': { utc: '2030-04-23T11:24:28.123Z', offsetMinutes: 120 },
  '2030-04-23T13:24:28': { utc: '2030-04-23T13:24:28.000Z' },
  '2030-04-23T13:24': { utc: '2030-04-23T13:24:00.000Z' },
  '2030-04-23T13:24:28.123': { utc: '2030-04-23T13:24:28.123Z' },
  '2030-04-23': { utc: '2030-04-23T00:00:00.000Z' },
  '2032-02-29': { utc: '2032-02-29T00:00:00.000Z' },
  '8/26/2030 7:23:57 PM -07:00': { utc: '2030-08-27T02:23:57.000Z', offsetMinutes: -420 },
  '08/26/2030 07:23:57 PM +02:00': { utc: '2030-08-26T17:23:57.000Z', offsetMinutes: 120 },
  '8/26/2030 7:23:57 PM': { utc: '2030-08-26T19:23:57.000Z' },
  '8/26/2030 12:00:00 AM': { utc: '2030-08-26T00:00:00.000Z' },
  '8/26/2030 12:00:00 PM': { utc: '2030-08-26T12:00:00.000Z' },
  '8/26/2030 11:59:59 AM': { utc: '2030-08-26T11:59:59.000Z' },
  '9/27/2030': { utc: '2030-09-27T00:00:00.000Z' },
  '1970-01-01': { utc: '1970-01-01T00:00:00.000Z' },
  '9999-12-31T23:59:59.999Z': { utc: '9999-12-31T23:59:59.999Z' },
};

const rejected = {
  'is empty or padded': ['', ' ', ' 2030-04-23', '2030-04-23 ', '2030-04-23\n', '\u00a09/27/2030'],
  'is a day that does not exist': ['2030-02-29', '2030-04-31', '2030-13-01', '2030-00-10'],
  'is a US day that does not exist': [
    '2/29/2030',
    '13/1/2030',
    '0/1/2030',
    '1/0/2030',
    '26/8/2030',
  ],
  'is a time that does not exist': ['2030-04-23T24:00:00Z', '2030-04-23T13:60Z'],
  'is a leap second': ['2030-06-30T23:59:60Z', '6/30/2030 11:59:60 PM'],
  'is an hour no 12-hour clock shows': ['8/26/2030 0:23:57 PM', '8/26/2030 13:23:57 PM'],
  'lacks AM or PM, or its seconds': ['8/26/2030 7:23:57', '8/26/2030 7:23 PM'],
  'writes AM or PM otherwise': ['8/26/2030 7:23:57 pm', '8/26/2030 7:23:57PM'],
  'has an offset beyond 14 hours': ['2030-04-23T13:24Z+14:01', '2030-04-23T13:24+14:01'],
  'has an offset in another form': ['2030-04-23T13:24+0100', '2030-04-23T13:24+01', '2030-04-23Z'],
  'has an offset that does not exist': ['2030-04-23T13:24+01:60', '2030-04-23T13:24 +01:00'],
  'has a fraction of no or 8 digits': ['2030-04-23T13:24:28.Z', '2030-04-23T13:24:28.12345678Z'],
  'is another form of ISO 8601': ['20300423', '2030-W17-2', '2030-113', '2030-04', '2030', 'P1D'],
  'joins date and time otherwise': ['2030-04-23 13:24', '2030-04-23t13:24z', '2030-04-23T'],
  'has a year of other than four digits': ['12030-04-23', '+012030-04-23', '9/27/30', '99/9/9'],
  'is before 1970': ['1969-12-31', '12/31/1969', '1970-01-01T00:00:00+00:01', '0000-01-01'],
  'is after 9999 in UTC': ['9999-12-31T23:59:59-00:01', '12/31/9999 11:00:00 PM -07:00'],
  'is no date': ['tomorrow', 'null', 'NaN', '1893456000', '٢٠٣٠-٠٤-٢٣', '2030/04/23', '23.4.2030'],
};

suite('parseExpiry', () => {
  for (const [text, { utc, offsetMinutes = 0 }] of Object.entries(accepted)) {
    test(`reads ${text}`, () => {
      assert.deepEqual(parseExpiry(text), { at: Date.parse(utc), offsetMinutes });
    });
  }

  for (const [why, texts] of Object.entries(rejected)) {
    test(`refuses a text that ${why}`, () => {
      for (const text of texts) assert.equal(parseExpiry(text), undefined, JSON.stringify(text));
    });
  }

  suite("is deaf to the machine's time zone and locale", () => {
    const zone = process.env['TZ'];
    after(() => {
      if (zone === undefined) delete process.env['TZ'];
      else process.env['TZ'] = zone;
      Settings.defaultLocale = 'en-US';
    });

    const places = [
      { zone: 'Pacific/Kiritimati', locale: 'ar-EG' },
      { zone: 'America/New_York', locale: 'de-DE' },
      { zone: 'Asia/Kathmandu', locale: 'th-TH-u-ca-buddhist' },
    ];
    for (const place of places) {
      test(`${place.zone}, ${place.locale}`, () => {
        process.env['TZ'] = place.zone;
        Settings.defaultLocale = place.locale;
        assert.notEqual(new Date(0).getHours(), 0, 'the time zone took effect');
        for (const [text, { utc, offsetMinutes = 0 }] of Object.entries(accepted)) {
          assert.deepEqual(parseExpiry(text), { at: Date.parse(utc), offsetMinutes }, text);
        }
        assert.equal(formatInstant(parseInstant(0)), '1970-01-01T00:00:00+00:00');
        assert.equal(formatTimestamp(parseInstant(0)), '1970-01-01T00:00:00.000+00:00');
      });
    }
  });
});

suite('formatInstant', () => {
  test('writes the wall clock of the offset it is given', () => {
    const at = parseInstant(Date.UTC(2030, 7, 27, 2, 23, 57));
    assert.equal(formatInstant(at, -420), '2030-08-26T19:23:57-07:00');
    assert.equal(formatInstant(at, 345), '2030-08-27T08:08:57+05:45');
    assert.equal(formatInstant(at, -30), '2030-08-27T01:53:57-00:30');
    assert.equal(formatInstant(at), '2030-08-27T02:23:57+00:00');
  });

  test('writes milliseconds only when there are any', () => {
    assert.equal(formatInstant(parseInstant(1)), '1970-01-01T00:00:00.001+00:00');
    assert.equal(formatInstant(parseInstant(1000)), '1970-01-01T00:00:01+00:00');
  });

  test('is read back as the same moment and offset', () => {
    const instant = fc.integer({ min: 14 * 3_600_000, max: latestInstant - 14 * 3_600_000 });
    fc.assert(
      fc.property(instant, fc.integer({ min: -840, max: 840 }), (milliseconds, offsetMinutes) => {
        const at = parseInstant(milliseconds);
        assert.deepEqual(parseExpiry(formatInstant(at, offsetMinutes)), { at, offsetMinutes });
      }),
    );
  });
});

suite('formatTimestamp', () => {
  test('writes milliseconds always and UTC as +00:00', () => {
    assert.equal(formatTimestamp(parseInstant(0)), '1970-01-01T00:00:00.000+00:00');
    assert.equal(formatTimestamp(latestInstant), '9999-12-31T23:59:59.999+00:00');
  });
});
