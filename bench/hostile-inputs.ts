/** What hostile expressions are evaluated on, and what their filters are given. */
import type { Json } from '../src/base/json.ts';
import { collidingNumbers } from './colliding-numbers.ts';

const textOf = (piece: string) => (size: number) =>
  piece.repeat(Math.ceil(size / piece.length)).slice(0, size);

/** About `size` characters of JSON each; what is kept of a token has no more than a million. */
export const inputs: Readonly<Record<string, (size: number) => Json>> = {
  'one letter': textOf('x'),
  digits: textOf('4'),
  markup: textOf('<&'),
  'opened comments': textOf('<!--'),
  entities: textOf('&amp;'),
  blanks: textOf(' '),
  lines: textOf('\r\n'),
  words: textOf('a '),
  percents: textOf('%41+'),
  'beyond Latin-1': (size) => textOf('Ωß')(size / 2),
  'sharp s': (size) => textOf('ß')(size / 2),
  pairs: (size) => textOf('😀')(size / 4),
  nothing: () => null,
  number: () => 1.5,
  zeros: (size) => new Array<Json>(size / 2).fill(0),
  decimals: (size) => Array.from({ length: size / 19 }, (_, at) => Math.sqrt(at + 2)),
  halves: (size) => Array.from({ length: size / 6 }, (_, at) => at + 0.5),
  'colliding numbers': (size) => collidingNumbers(Math.floor(size / 11)),
  'short texts': (size) => Array.from({ length: size / 10 }, (_, at) => `k${at * 7919}`),
  'long texts': (size) =>
    Array.from({ length: 100 }, (_, at) => `${'x'.repeat(Math.floor(size / 100))}${at}`),
  'empty lists': (size) => Array.from({ length: size / 3 }, () => []),
  'empty objects': (size) => Array.from({ length: size / 3 }, () => ({})),
  objects: (size) => Array.from({ length: size / 8 }, (_, at) => ({ a: at })),
  'named at length': (size) =>
    Object.fromEntries([...'abcdefghij'].map((name) => [name.repeat(size / 10), 1])),
  'nested lists': (size) =>
    Array.from({ length: size / 120 }, () => {
      let inner: Json = 1;
      for (let level = 0; level < 60; level += 1) inner = [inner];
      return inner;
    }),
  lists: (size) => Array.from({ length: size / 200 }, () => new Array<Json>(100).fill(0)),
  'lists of members': (size) =>
    Array.from({ length: size / 200 }, () => ({ a: new Array<Json>(100).fill(0) })),
  'texts beyond ASCII': (size) =>
    Array.from({ length: 50 }, (_, at) => `${'Ω'.repeat(size / 100)}${(at * 31) % 50}`),
  'all of Unicode': (size) =>
    Array.from({ length: size / 3 }, (_, at) => String.fromCharCode(0x100 + (at % 50_000))).join(
      '',
    ),
  'one object': (size) => Object.fromEntries(Array.from({ length: size / 10 }, (_, k) => [k, 1])),
  'nested objects': (size) =>
    Array.from({ length: size / 360 }, () => {
      let inner: Json = 1;
      for (let level = 0; level < 60; level += 1) inner = { a: inner };
      return inner;
    }),
};

const steps = (step: string, count: number) => new Array(count).fill(step).join('.');

const standardArguments = [
  '',
  ": 'x'",
  ': 5',
  ': 400000',
  ': data',
  ': half',
  ": 'x', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy'",
  ": '', 'y'",
  ': half, data',
  ': data, data',
  ': 1, 1000000',
  ": 'a'",
  ": 'a', list",
  ": 'a', data",
  `: '${steps('a', 199)}'`,
];

const argumentsByFilter: Readonly<Record<string, readonly string[]>> = {
  date: ['%c', '%x', '%X', '%A', '%B', '%Z', '%j', '%N', '%^#_0-%Y'].flatMap((code) => [
    `: '${code.repeat(Math.floor(190 / code.length))}'`,
    `: '${code}', 'Europe/Berlin'`,
  ]),
  hmac: [": 'sha-1', 'k'", ": 'sha-512', 'k'", ": 'sha-512', data"],
  json: [
    ": '$[*]'",
    ": '$..*'",
    ": '$..a'",
    `: '$${'.a'.repeat(60)}'`,
    `: '$${'[*]'.repeat(60)}'`,
    `: '$${'[*,*]'.repeat(60)}'`,
    `: '$..[${'0,'.repeat(300)}0]'`,
    ": '$[::-1]'",
    ": '$[?@.a == 1]'",
    ": '$..[?@ == @]'",
    ": '$..[?length(@) > 1 && @.a < 2]'",
    `: '$[?${steps('@', 1)}${' || @.a'.repeat(120)}]'`,
    ': half',
  ],
  card_exp: [": 'MMYYYY'"],
  pad_left: [": 10000, 'x'"],
  pad_right: [": 10000, 'x'"],
  reveal: ['', ": 4, 4, '*'", ": 4, 4, '😀', 'abc'"],
  reveal_last: [': 4', ": 4, '😀'"],
  card_mask: ['', ": true, true, '😀', 'abc'"],
  card_bin: ['', ": 'abc'"],
  alias_card: ['', ': true, true'],
  alias_preserve_format: ['', ': 4, 4'],
  alias_preserve_length: ['', ': 4, 4'],
};

/** What a filter is given, each beginning with a colon where it is given anything. */
export function argumentsOf(filter: string): readonly string[] {
  return argumentsByFilter[filter] ?? standardArguments;
}
