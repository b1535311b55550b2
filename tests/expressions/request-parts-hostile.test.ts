/** Whatever is written into a request: no value is read as anything else, and no text takes long. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Json } from '../../src/base/json.ts';
import { workMax } from '../../src/expressions/evaluation/budget.ts';
import { ExpressionError } from '../../src/expressions/evaluation/error.ts';
import {
  compileText,
  evaluateText,
  readText,
} from '../../src/expressions/request-parts/compile.ts';
import { expressionsMax } from '../../src/expressions/request-parts/expressions.ts';
import {
  bodyWithExpressionsBytesMax,
  type TextForm,
} from '../../src/expressions/request-parts/forms.ts';
import type { RequestScope } from '../../src/expressions/request-parts/scope.ts';
import { mutated, sentinel } from './generate.ts';

/** Of a text alone: the value at its only expression, whatever it is. */
const holding = (value: Json): RequestScope => ({ valueOf: () => value });

const write = (text: string, form: TextForm, scope: RequestScope) =>
  evaluateText(compileText(text, form), scope);

const throwsAt = (run: () => unknown, message: RegExp) =>
  assert.throws(run, (error) => {
    assert.ok(error instanceof ExpressionError);
    assert.match(error.public, message);
    return true;
  });

describe('whatever the value is, it is read back at its place and nothing else has changed', () => {
  const hostile = fc.string({
    unit: fc.oneof(
      {
        weight: 3,
        arbitrary: fc.constantFrom(
          ...'"\'\\{}<>&]%;=+/.?# \t',
          '\r',
          '\n',
          '..',
          ']]>',
          '{{',
          '}}',
        ),
      },
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
    ),
    maxLength: 20,
  });
  const any = fc.oneof(hostile, fc.string({ unit: 'binary', maxLength: 10 }));
  const ofXml = any.map((text) =>
    text.replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, ''),
  );
  const ofAddresses = any.map((text) => text.toWellFormed());

  it('in JSON', () => {
    const json = fc.oneof(any, fc.jsonValue() as fc.Arbitrary<Json>);
    fc.assert(
      fc.property(json, any, (value, other) => {
        const given: RequestScope = { valueOf: ({ id }) => (id === 'x' ? value : other) };
        const name = other.replaceAll('{', '(');
        const words = JSON.stringify(name);
        const text = `["{{ x }}", {${words}:1e2},"]{{ y }}{{ y }}[",{{ x }}, ${words}]`;
        const plain = JSON.parse(JSON.stringify(value)) as Json;
        const parsed = JSON.parse(write(text, 'json', given)) as Json[];
        assert.deepEqual(parsed, [plain, { [name]: 100 }, `]${other}${other}[`, plain, name]);
      }),
    );
  });

  it('in XML', () => {
    fc.assert(
      fc.property(ofXml, ofXml, (value, other) => {
        const given: RequestScope = { valueOf: ({ id }) => (id === 'x' ? value : other) };
        const text =
          '<r a="1{{ x }}2" b=\'{{ y }}\'>3{{ y }}]]{{ x }}4</r><![CDATA[5{{ x }}]{{ y }}{{ x }}]]><e/>';
        const { attributes, texts, tags } = readBack(write(text, 'xml', given));
        assert.deepEqual(attributes, [`1${value}2`, other]);
        assert.equal(texts.join('|'), `3${other}]]${value}4|5${value}]${other}${value}`);
        assert.deepEqual(tags, ['r', '/r', 'e/']);
      }),
    );
  });

  it('in a form and a query', () => {
    fc.assert(
      fc.property(ofAddresses, (value) => {
        for (const form of ['form', 'query'] as const) {
          const written = write('a={{ x }}&b=1{{ x }}2&c=3', form, holding(value));
          const read = [...new URLSearchParams(written)];
          assert.deepEqual(read, [
            ['a', value],
            ['b', `1${value}2`],
            ['c', '3'],
          ]);
          const url = new URL(`https://host.test/p?${written}`);
          assert.deepEqual([...url.searchParams], read);
          assert.equal(url.hash, '');
        }
      }),
    );
  });

  it('in a path, which stays below its base and has as many segments', () => {
    fc.assert(
      fc.property(fc.oneof(ofAddresses, fc.constantFrom('', '.', '..', '%2E')), (value) => {
        let written: string;
        try {
          written = write('/a/{{ x }}/b{{ x }}/c', 'path', holding(value));
        } catch (error) {
          assert.ok(error instanceof ExpressionError && ['', '.', '..'].includes(value), value);
          return;
        }
        const url = new URL(`https://host.test/base${written}?q`);
        const [, base, a, x = '', bx = '', c, ...more] = url.pathname.split('/');
        assert.deepEqual([url.host, base, a, c, more], ['host.test', 'base', 'a', 'c', []]);
        assert.deepEqual([x, bx].map(decodeURIComponent), [value, `b${value}`]);
      }),
    );
  });

  it('in a header, or it is refused', () => {
    fc.assert(
      fc.property(any, (value) => {
        try {
          assert.equal(write('a {{ x }}', 'header', holding(value)), `a ${value}`);
          assert.doesNotThrow(() => new Headers({ a: `a ${value}.` }));
        } catch (error) {
          assert.ok(error instanceof ExpressionError, String(error));
          assert.match(value, /[^\t\x20-\x7e\x80-\xff]/);
        }
      }),
    );
  });

  /** Reads what these tests write, as XML 1.0 says: sections by themselves, entities, and ends of lines. */
  function readBack(xml: string) {
    const attributes: string[] = [];
    const texts: string[] = [];
    const tags: string[] = [];
    const unescaped = (text: string) =>
      text.replace(/&(?:(lt|gt|amp|quot|apos)|#([0-9]+));/g, (_, name: string, code: string) =>
        name
          ? { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }[name as 'lt']
          : String.fromCodePoint(Number(code)),
      );
    let joined = '';
    const lines = xml.replace(/\r\n?/g, '\n');
    for (const [, tag, section, text] of lines.matchAll(
      /<(?!!)([^>"']*(?:"[^"<]*"[^>"']*|'[^'<]*'[^>"']*)*)>|<!\[CDATA\[(.*?)\]\]>|([^<]+)/gs,
    )) {
      if (text !== undefined) assert.doesNotMatch(text, /\]\]>/);
      if (tag === undefined) {
        joined += section ?? unescaped(text ?? '');
        continue;
      }
      for (const [, double, single] of tag.matchAll(/"([^"]*)"|'([^']*)'/g)) {
        attributes.push(unescaped((double ?? single ?? '').replace(/[\t\n]/g, ' ')));
      }
      if (joined !== '') texts.push(joined);
      joined = '';
      tags.push(tag.split(' ')[0] ?? '');
    }
    return { attributes, texts, tags };
  }
});

describe('hostile texts', () => {
  const forms = ['json', 'xml', 'form', 'text', 'path', 'query', 'header'] as const;

  it('end with a value or an ExpressionError that repeats nothing', () => {
    const given: RequestScope = {
      ...holding(sentinel),
      config: { a: sentinel },
      res: { a: sentinel },
    };
    const around = fc.constantFrom('', '"', '{"a":"', '<a b="', '<![CDATA[', '%7B', '\\', '<!--');
    fc.assert(
      fc.property(
        fc.constantFrom(...forms),
        mutated,
        around,
        around,
        (form, text, before, after) => {
          try {
            write(before + text.replaceAll('data', 'card') + after, form, given);
          } catch (error) {
            assert.ok(error instanceof ExpressionError, String(error));
            assert.doesNotMatch(error.public, new RegExp(sentinel));
          }
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('have at most 10,000 expressions', () => {
    const most = '{{ x }}'.repeat(expressionsMax);
    assert.equal(compileText(most, 'text').expressionCount, expressionsMax);
    for (const form of ['text', 'json', 'xml', 'form', 'path'] as const) {
      const text = form === 'json' ? `"${most}{{ x }}"` : `${most}{{ x }}`;
      throwsAt(() => compileText(text, form), /must have at most 10000 expressions/);
    }
  });

  it('are read by one pass, however large', () => {
    const fill = (piece: string) =>
      piece.repeat(Math.ceil(bodyWithExpressionsBytesMax / piece.length));
    // Braces, parts to be taken literally, quotes, escapes, and what begins a part of XML.
    const pieces = ['{{', '{% ', '%7B%25+', '\\"', '"{{ x }}":', '["{{ x }}",', "<a b='{{ x }}'>"];
    pieces.push('<', '<!A [', '<![CDATA[', "{{ x | append: '", "{{'", '%7B%7B%20', '&lt;{{');
    for (const piece of pieces) {
      for (const form of ['json', 'xml', 'form'] as const) {
        for (const text of [fill(piece), `${fill(piece)}{{ x }}`]) {
          try {
            readText(text, form);
          } catch (error) {
            assert.ok(error instanceof ExpressionError, String(error));
          }
        }
      }
    }
  });

  it('pay for what is written, also where escaping makes it longer', () => {
    const refused = new RegExp(`needs more than ${workMax} units of work`);
    const long = holding('<'.repeat(1_000_000));
    assert.equal(write('{{ x }}', 'text', long).length, 1_000_000);
    throwsAt(() => write('{{ x }}'.repeat(5), 'text', long), refused);
    throwsAt(() => write('{{ x }}'.repeat(2), 'xml', long), refused);
    throwsAt(() => write('{{ x }}', 'form', holding('€'.repeat(500_000))), refused);
  });

  it('have expressions of at most 4,000 characters, in any spelling', () => {
    const filters = (length: number) =>
      `| append: '${'€'.repeat(length - "| append: '' ".length)}' `;
    const spelled = (length: number) => encodeURIComponent(`{{ x ${filters(length)}}}`);
    assert.equal(write(spelled(3900), 'query', holding('')).length, 9 * (3900 - 13));
    throwsAt(() => compileText(spelled(4001), 'query'), /expected "}}"|at most 4000 characters/);
  });
});
