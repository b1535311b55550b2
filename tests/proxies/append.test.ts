/** Appending to responses: the value is at its location, and every other byte is as it was. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Json } from '../../src/base/json.ts';
import { ExpressionError } from '../../src/expressions/evaluation/error.ts';
import { type Step, singularSteps } from '../../src/expressions/filters/json-path.ts';
import { appendJson, isHeaderName } from '../../src/proxies/transforms/append.ts';

const append = (text: string, location: string, value: Json) => {
  const steps = singularSteps(location);
  assert.ok(steps, location);
  return appendJson(text, steps, value);
};

/** What appending means for a parsed value; `undefined` where the location does not fit it. */
function appended(json: unknown, [step, ...steps]: readonly Step[], value: Json): unknown {
  if (step === undefined) return value;
  const parent = json === undefined ? (typeof step === 'number' ? [] : {}) : json;
  const isList = Array.isArray(parent);
  if (typeof parent !== 'object' || parent === null) return undefined;
  if (isList !== (typeof step === 'number')) return undefined;
  const index = isList && Number(step) < 0 ? parent.length + Number(step) : step;
  if (isList && (Number(index) < 0 || Number(index) > parent.length)) return undefined;
  const member = Object.hasOwn(parent, index)
    ? (parent as Record<Step, unknown>)[index]
    : undefined;
  const below = appended(member, steps, value);
  if (below === undefined) return undefined;
  const copy = isList ? [...parent] : { ...parent };
  return Object.defineProperty(copy, index, {
    value: below,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}

/** JSON as others write it: blanks, escapes, names that come twice, numbers that a double cannot hold. */
const blank = fc.string({ unit: fc.constantFrom(' ', '\n', '\t', '\r'), maxLength: 2 });
const stepName = fc.constantFrom('a', 'b', '__proto__', 'x y', '"', '😀', '');
const spelledName = fc
  .tuple(stepName, fc.boolean())
  .map(([name, isEscaped]) =>
    isEscaped
      ? `"${name.replaceAll(/./gs, (one) => [...one.split('')].map(escaped).join(''))}"`
      : JSON.stringify(name),
  );
const plainText = fc.oneof(
  fc.constantFrom('12345678901234567890123', '1.0', '-0', '1E400', '1e-7', 'true', 'null', '""'),
  fc.constantFrom('"]"', '"}"', '"\\\\"', '"\\""', '"{\\u005b"', '"a,:b"', '"é\ud83d\ude00"'),
  fc.string().map((text) => JSON.stringify(text)),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
);
const { json: jsonText } = fc.letrec<{ json: string; list: string; object: string }>((tie) => ({
  json: fc
    .tuple(
      blank,
      fc.oneof({ maxDepth: 4, withCrossShrink: true }, plainText, tie('list'), tie('object')),
      blank,
    )
    .map((parts) => parts.join('')),
  list: fc
    .tuple(blank, fc.array(tie('json'), { maxLength: 4 }))
    .map(([inside, items]) => `[${items.length === 0 ? inside : items.join(',')}]`),
  object: fc
    .tuple(blank, fc.array(fc.tuple(blank, spelledName, blank, tie('json')), { maxLength: 4 }))
    .map(([inside, members]) => {
      const texts = members.map(
        ([before, name, after, value]) => `${before}${name}${after}:${value}`,
      );
      return `{${texts.length === 0 ? inside : texts.join(',')}}`;
    }),
}));
const locations = fc.array(fc.oneof(stepName, fc.integer({ min: -3, max: 3 })), { maxLength: 4 });
const values = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>;

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Undefined for a text that is refused. */
async function attempt(
  text: string,
  location: readonly Step[],
  value: Json,
): Promise<string | undefined> {
  try {
    return await appendJson(text, location, value);
  } catch (error) {
    assert.ok(error instanceof ExpressionError, String(error));
    return undefined;
  }
}

function parsed(text: string): { readonly json: unknown } | undefined {
  try {
    return { json: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

describe('append_json', () => {
  const expected: readonly (readonly [string, string, Json, string])[] = [
    ['', '$.a[0]', 1, '{"a":[1]}'],
    ['{}', '$.a', 1, '{"a":1}'],
    [' { } ', '$.a', 1, ' {"a":1 } '],
    ['{"a": 1,\n"b": 2\n}', '$.a', null, '{"a": null,\n"b": 2\n}'],
    ['{"a": 1\n}', '$.b', 2, '{"a": 1,"b":2\n}'],
    ['{}', '$.a.b[0].c', 'x', '{"a":{"b":[{"c":"x"}]}}'],
    ['{"a":[1, 2]}', '$.a[2]', 3, '{"a":[1, 2,3]}'],
    ['{"a":[ ]}', '$.a[0]', 3, '{"a":[3 ]}'],
    ['{"a":[1, 2]}', '$.a[-1]', 3, '{"a":[1, 3]}'],
    ['[{}]', "$[0]['x y']", true, '[{"x y":true}]'],
    ['{"\\u0061":{"b":1}}', '$.a', { c: [] }, '{"\\u0061":{"c":[]}}'],
    ['{"a":{"b":1},"a":{}}', '$.a.b', 2, '{"a":{"b":1},"a":{"b":2}}'],
    ['{"a":[[0]],"a":[[]],"b":1}', '$.a[0][0]', 2, '{"a":[[0]],"a":[[2]],"b":1}'],
    ['{"n":12345678901234567890, "m":1.0}', '$.a', 1, '{"n":12345678901234567890, "m":1.0,"a":1}'],
    ['{"a":1}', '$.__proto__.x', 2, '{"a":1,"__proto__":{"x":2}}'],
    ['{}', '$.constructor.y', 1, '{"constructor":{"y":1}}'],
  ];
  for (const [text, location, value, result] of expected) {
    it(`${location} of ${text} gives ${result}`, async () =>
      assert.equal(await append(text, location, value), result));
  }

  const unfit: readonly (readonly [string, string])[] = [
    ['{"a":"text"}', '$.a.b'],
    ['{"a":null}', '$.a.b'],
    ['{"a":{"b":1},"a":1}', '$.a.b'],
    ['{"a":{}}', '$.a[0]'],
    ['{"a":[]}', '$.a.b'],
    ['{"a":[]}', '$.a[1]'],
    ['{"a":[1]}', '$.a[-2]'],
    ['{}', '$.a[-1]'],
    ['{}', '$.a[1]'],
    ['"text"', '$.a'],
  ];
  for (const [text, location] of unfit) {
    it(`${location} does not fit ${text}`, async () => {
      await assert.rejects(() => append(text, location, 1), {
        name: 'ExpressionError',
        message: /does not fit/,
      });
    });
  }

  it('parsed again is what appending to the parsed value gives', async () => {
    await fc.assert(
      fc.asyncProperty(jsonText, locations, values, async (text, location, value) => {
        const result = await attempt(text, location, value);
        const model = appended(JSON.parse(text), location, value);
        assert.equal(result === undefined, model === undefined);
        // As text: a comparison of objects would not see a member called __proto__.
        if (result !== undefined) {
          assert.equal(JSON.stringify(JSON.parse(result)), JSON.stringify(model));
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('leaves every byte outside of one inserted or replaced part', async () => {
    const marker = 'Here it is, 7f1c';
    await fc.assert(
      fc.asyncProperty(jsonText, locations, async (text, location) => {
        const result = await attempt(text, location, marker);
        if (result === undefined) return;
        // A value that is replaced is all that may be missing.
        const [before, after, ...others] = result.split(JSON.stringify(marker));
        assert.ok(before !== undefined && after !== undefined && others.length === 0);
        let prefix = 0;
        while (prefix < before.length && before[prefix] === text[prefix]) prefix += 1;
        let suffix = 0;
        while (suffix < after.length && after.at(-1 - suffix) === text.at(-1 - suffix)) suffix += 1;
        if (prefix === before.length && suffix === after.length) {
          const replaced = text.slice(prefix, text.length - suffix);
          assert.ok(replaced === '' || parsed(replaced), replaced);
        } else {
          // What is added is created members and items, and nothing is removed.
          assert.match(before.slice(prefix), /^,?(?:[[{]|"(?:[^"\\]|\\.)*":)*$/s);
          assert.match(after.slice(0, after.length - suffix), /^[\]}]*$/);
          assert.ok(prefix + suffix >= text.length);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('accepts what JSON.parse accepts, and nothing else', async () => {
    const anything = fc.string({ unit: fc.constantFrom(...'[]{},:"\\ue1+-.0 a\n'), maxLength: 12 });
    const damaged = fc
      .tuple(jsonText, fc.nat(), fc.constantFrom('', ',', '"', '\\', '0', '\u0001', ']', '}', ' '))
      .map(([text, at, piece]) => {
        const place = at % (text.length + 1);
        return text.slice(0, place) + piece + text.slice(place + 1);
      });
    await fc.assert(
      fc.asyncProperty(fc.oneof(anything, damaged), async (text) => {
        fc.pre(text !== '');
        assert.equal((await attempt(text, [], 1)) !== undefined, parsed(text) !== undefined, text);
      }),
      { numRuns: 10_000 },
    );
    for (const text of [' ', '\ufeff{}', '01', '1.', '.5', '+1', '"\t"', '"\\x"', 'nul', '[1,]'])
      assert.equal(await attempt(text, [], 1), undefined, text);
  });

  it('reads strings of any length, and finds what is wrong in them', async () => {
    for (const length of [30, 31, 32, 33, 34, 100]) {
      const long = 'é'.repeat(length);
      for (const text of [
        `${long}`,
        `${long}\\n${long}\\"${long}`,
        `\\\\${long}\\u0041`,
        '[1]"'.slice(0, 3),
      ]) {
        assert.equal(await append(`["${text}"]`, '$[1]', 'x'), `["${text}","x"]`);
      }
      for (const text of [
        `${long}\n`,
        `${long}\\x${long}`,
        `\\n${long}\u001f${long}`,
        `${long}\\`,
      ]) {
        assert.equal(await attempt(`["${text}"]`, [1], 'x'), undefined);
      }
    }
  });

  it('lets others run while it goes through a large text', async () => {
    const text = `[${'1,'.repeat(2_000_000)}1]`;
    let isDone = false;
    let turns = 0;
    const count = () => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    const appended = await append(text, '$[-1]', 2);
    isDone = true;
    assert.equal(appended, `${text.slice(0, -2)}2]`);
    assert.ok(turns > 1);
  });

  it('goes through a text that is nested a million levels deep', async () => {
    const text = '['.repeat(1_000_000) + ']'.repeat(1_000_000);
    assert.equal(await append(text, '$[1]', 'x'), `${text.slice(0, -1)},"x"]`);
    assert.equal(await attempt(text.slice(0, -1), [1], 'x'), undefined);
  });
});

describe('a location of append_json leads to one place', () => {
  it('of names and indexes', () => {
    assert.deepEqual(singularSteps("$.a['b c'][0][-1]"), ['a', 'b c', 0, -1]);
    assert.deepEqual(singularSteps('$'), []);
    assert.equal(singularSteps(`$${'.a'.repeat(64)}`)?.length, 64);
  });

  for (const path of [
    '',
    'a',
    '$.*',
    '$..a',
    '$[0:1]',
    "$['a','b']",
    '$[?@.a]',
    '$.a.',
    `$${'.a'.repeat(65)}`,
  ]) {
    it(`which ${path.slice(0, 20)} does not`, () => assert.equal(singularSteps(path), undefined));
  }
});

describe('a header', () => {
  it('has a name of the characters of RFC 9110, and does not frame the message', () => {
    for (const name of ['X-A', 'x_a', '!#$%', 'a'.repeat(100)]) assert.ok(isHeaderName(name), name);
    const refused = [
      '',
      'a b',
      'a:',
      'é',
      'a\n',
      'Content-Length',
      'transfer-encoding',
      'a'.repeat(101),
    ];
    for (const name of refused) assert.ok(!isHeaderName(name), name);
  });
});
