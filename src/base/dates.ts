/** Dates in the forms that callers send and that the vault returns. */
import { DateTime, FixedOffsetZone } from 'luxon';
import { type Instant, latestInstant, parseInstant } from './clock.ts';

export interface Expiry {
  readonly at: Instant;
  /** The caller's UTC offset, stored so that the response shows the same local time; 0 without one. */
  readonly offsetMinutes: number;
}

/** The forms that {@link parseExpiry} accepts, for messages to callers. */
export const expiryForms =
  'must be a date-time such as 2030-08-26T19:23:57-07:00, 2030-08-26T19:23:57Z or ' +
  '8/26/2030 7:23:57 PM -07:00, where a missing offset means UTC, or a date such as 2030-08-26 or ' +
  '8/26/2030, which means 12 AM UTC of that day, from the year 1970 to 9999';

const offset = '(?<sign>[+-])(?<offsetHours>[0-9]{2}):(?<offsetMinutes>[0-5][0-9])';

/** One pattern per family; luxon validates the calendar date. */
const forms = [
  new RegExp(
    '^(?<year>[0-9]{4})-(?<month>[0-9]{2})-(?<day>[0-9]{2})' +
      '(?:T(?<hour>[01][0-9]|2[0-3]):(?<minute>[0-9]{2})' +
      `(?::(?<second>[0-9]{2})(?:\\.(?<fraction>[0-9]{1,7}))?)?(?:Z|${offset})?)?$`,
  ),
  new RegExp(
    '^(?<month>[0-9]{1,2})/(?<day>[0-9]{1,2})/(?<year>[0-9]{4})' +
      '(?: (?<hour>0?[1-9]|1[0-2]):(?<minute>[0-9]{2}):(?<second>[0-9]{2}) (?<meridiem>AM|PM)' +
      `(?: ${offset})?)?$`,
  ),
];

/** The widest offset in use (Kiribati), and the widest that .NET clients can send. */
const offsetMinutesMax = 14 * 60;

type DateParts = Readonly<Record<string, string | undefined>>;

/**
 * Parses an expiry in one of {@link expiryForms} and truncates fractions of a second to milliseconds. Returns
 * `undefined` for any other string, for a day or time that does not exist, for an offset beyond 14 hours, and for an
 * instant outside the years 1970 to 9999 in UTC. The machine's time zone and locale have no effect.
 */
export function parseExpiry(text: string): Expiry | undefined {
  const parts = forms.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined);
  if (parts === undefined) return undefined;
  const offsetMinutes = offsetOf(parts);
  if (Math.abs(offsetMinutes) > offsetMinutesMax) return undefined;
  const fields = {
    year: Number(parts['year']),
    month: Number(parts['month']),
    day: Number(parts['day']),
    hour: hourOf(parts),
    minute: Number(parts['minute'] ?? 0),
    second: Number(parts['second'] ?? 0),
    millisecond: Number((parts['fraction'] ?? '').padEnd(3, '0').slice(0, 3)),
  };
  const moment = DateTime.fromObject(fields, { zone: FixedOffsetZone.instance(offsetMinutes) });
  if (!moment.isValid) return undefined;
  const at = moment.toMillis();
  return at >= 0 && at <= latestInstant ? { at: parseInstant(at), offsetMinutes } : undefined;
}

function offsetOf(parts: DateParts): number {
  const minutes = Number(parts['offsetHours'] ?? 0) * 60 + Number(parts['offsetMinutes'] ?? 0);
  return parts['sign'] === '-' && minutes > 0 ? -minutes : minutes;
}

function hourOf(parts: DateParts): number {
  const hour = Number(parts['hour'] ?? 0);
  if (parts['meridiem'] === undefined) return hour;
  return (hour % 12) + (parts['meridiem'] === 'PM' ? 12 : 0);
}

/**
 * ISO 8601 at the given offset, `2030-08-26T19:23:57-07:00`, with `+00:00` for UTC and with milliseconds only if they
 * are not zero. The pair must come from {@link parseExpiry}.
 */
export function formatInstant(at: Instant, offsetMinutes = 0): string {
  const local = new Date(at + offsetMinutes * 60_000).toISOString();
  const time = at % 1000 === 0 ? local.slice(0, 19) : local.slice(0, 23);
  const minutes = Math.abs(offsetMinutes);
  const sign = offsetMinutes < 0 ? '-' : '+';
  return `${time}${sign}${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}`;
}

/** ISO 8601 in UTC, always with milliseconds: `2030-08-26T19:23:57.120+00:00`. */
export function formatTimestamp(at: Instant): string {
  const second = Math.floor(at / 1000);
  // Most timestamps that are formatted in a row fall into the same second.
  if (latest.second !== second) {
    latest = { second, text: new Date(second * 1000).toISOString().slice(0, 20) };
  }
  return `${latest.text}${String(at - second * 1000).padStart(3, '0')}+00:00`;
}

/** The most recently formatted second, up to its decimal point. */
let latest = { second: Number.NaN, text: '' };

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
