/** How times, numbers and ids are written. */
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' });
const absolute = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' });
const integers = new Intl.NumberFormat('en');

const units: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', 31_536_000_000],
  ['month', 2_592_000_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
];

/** As `5 min. ago`, or `in 3 days`. */
export function fromNow(time: string | number): string {
  const ahead = new Date(time).getTime() - Date.now();
  const [unit, size] = units.find(([, one]) => Math.abs(ahead) >= one) ?? [];
  return unit && size ? relative.format(Math.round(ahead / size), unit) : 'just now';
}

export const fullTime = (time: string | number): string => absolute.format(new Date(time));
export const number = (value: number): string => integers.format(value);

const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function bytes(value: number): string {
  const power = value < 1 ? 0 : Math.min(Math.floor(Math.log2(value) / 10), byteUnits.length - 1);
  const scaled = value / 1024 ** power;
  const digits = power > 0 && scaled < 10 ? 1 : 0;
  return `${scaled.toFixed(digits)} ${byteUnits[power]}`;
}

/** Milliseconds in the largest unit of which they are a whole number, such as `400 days`. */
export function duration(milliseconds: number): string {
  const [unit, size] = units
    .slice(2)
    .find(([, one]) => milliseconds >= one && milliseconds % one === 0) ?? ['second', 1000];
  const count = milliseconds / size;
  return `${number(count)} ${unit}${count === 1 ? '' : 's'}`;
}

/** The beginning of an id, which is enough to tell it from others. */
export const shortId = (id: string): string => (/^[0-9a-f-]{36}$/.test(id) ? id.slice(0, 8) : id);

/** What a token shows of its data, on one line. */
export function oneLine(data: unknown): string {
  if (data === null || data === undefined) return '';
  return typeof data === 'string' ? data : JSON.stringify(data);
}
