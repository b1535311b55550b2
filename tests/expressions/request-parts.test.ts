/** Expressions in requests: each value is written so that it is one value where it stands. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json } from '../../src/base/json.ts';
import { ExpressionError } from '../../src/expressions/evaluation/error.ts';
import {
  compileText,
  compileValue,
  evaluateText,
  evaluateValue,
} from '../../src/expressions/request-parts/compile.ts';
import {
  formOf,
  hasExpressions,
  type TextForm,
} from '../../src/expressions/request-parts/forms.ts';
import type { RequestScope } from '../../src/expressions/request-parts/scope.ts';

const card = { number: '4242424242424242', expiration_month: 12, flags: [true, null] };
const values: Readonly<Record<string, Json>> = {
  'data card': card,
  'token card': { id: 'card', data: card },
  'token_intent card': { id: 'intent' },
  "data o'brien @ home": 'O’Brien',
  'data dot': '.',
  'data dots': '..',
  'data encoded dots': '%2e%2E',
  'data end of CDATA': ']]>',
  'data lines': 'a\r\nb',
  'data quote': '"',
  'data true': true,
  'data empty': '',
};

const scope: RequestScope = {
  valueOf: ({ kind, id }) => values[`${kind} ${id}`],
  config: { KEY: 'secret', 'a b': 'c' },
  request: { headers: { 'X-Request-Id': 'r1' }, body: '{"a":1}' },
  encrypted: { data: { number: '4000056655665556' } },
  transforms: new Map<string, Json>([['card-1', { id: 'tok' }]]),
  res: { a: [{ b: 5 }], json: 'inner', list: null },
};

const write = (text: string, form: TextForm, given: RequestScope = scope) =>
  evaluateText(compileText(text, form), given);

const number = "{{ card | json: '$.number' }}";

/** Of a text alone: the value at its only expression, whatever it is. */
const holding = (value: Json): RequestScope => ({ valueOf: () => value });

const throwsAt = (run: () => unknown, message: RegExp) =>
  assert.throws(run, (error) => {
    assert.ok(error instanceof ExpressionError);
    assert.match(error.public, message);
    return true;
  });

describe('the form of a body is said by its media type', () => {
  const forms: readonly (readonly [string | undefined, TextForm | undefined])[] = [
    ['application/json', 'json'],
    ['Application/Vnd.Api+JSON; charset=utf-8', 'json'],
    ['application/x-ndjson', 'json'],
    ['text/xml', 'xml'],
    ['application/soap+xml;charset=UTF-8', 'xml'],
    ['application/x-www-form-urlencoded', 'form'],
    ['text/plain', 'text'],
    ['text/csv', 'text'],
    ['application/graphql', 'text'],
    ['application/octet-stream', undefined],
    ['multipart/form-data; boundary=x', undefined],
    ['image/png', undefined],
    ['', undefined],
    [undefined, undefined],
  ];
  for (const [mediaType, form] of forms) {
    it(`${mediaType} is ${form}`, () => assert.equal(formOf(mediaType), form));
  }

  it('braces are seen in every spelling', () => {
    for (const text of ['{{', 'a{{b', '%7B%7b', '%7b{', '{%7B']) assert.ok(hasExpressions(text));
    for (const text of ['', '{ {', '%7B', '%7Bx%7B', '{"a":{}}']) assert.ok(!hasExpressions(text));
  });
});

describe('JSON', () => {
  const expected: readonly (readonly [what: string, text: string, written: string])[] = [
    ['a whole string has the type of its value', '["{{ card }}"]', `[${JSON.stringify(card)}]`],
    ['a number', `{"m":"{{ card | json: '$.expiration_month' }}"}`, '{"m":12}'],
    ['true', '["{{ true }}"]', '[true]'],
    ['null', `[ "{{ card | json: '$.nope' }}" ]`, '[ null ]'],
    ['white space around a whole expression', String.raw`[" \n{{ true }}\t"]`, '[true]'],
    ['a string stays a string', `["${number}"]`, '["4242424242424242"]'],
    ['text within text', `["no ${number}!"]`, '["no 4242424242424242!"]'],
    ['a number within text', `["{{ card | json: '$.expiration_month' }}/30"]`, '["12/30"]'],
    [
      'an escaped expression',
      String.raw`["{{ card | json: \"$.number\" }}"]`,
      `["${card.number}"]`,
    ],
    [
      'escaped as unicode',
      String.raw`["{{ card | json: \u0027$.number\u0027 }}"]`,
      `["${card.number}"]`,
    ],
    ['a value with quotes', '["a{{ quote }}", "{{ quote }}"]', String.raw`["a\"", "\""]`],
    [
      'without a string around it',
      `{"n": {{ card | json: '$.number' }}}`,
      `{"n": "${card.number}"}`,
    ],
    ['bare, with quotes', `[{{ card | json: "$.expiration_month" }},{{true}}]`, '[12,true]'],
    ['braces in quotes', `["{{ quote | append: '}}' }}"]`, String.raw`["\"}}"]`],
    ['raw', '["{% raw %}{{ card }}{% endraw %}{{ true }}"]', '["{{ card }}true"]'],
    [
      'names of members are as they were',
      '{"{{ card }}": 1, "{{x}}" : "{{ true }}"}',
      '{"{{ card }}": 1, "{{x}}" : true}',
    ],
    ['a text alone', '"{{ true }}"', 'true'],
    ['lines', '{"a":"{{ true }}"}\n{"a":"{{ quote }}"}\n', '{"a":true}\n{"a":"\\""}\n'],
  ];
  for (const [what, text, written] of expected) {
    it(what, () => assert.equal(write(text, 'json'), written));
  }

  it('keeps every byte that is no expression', () => {
    const around = String.raw`{ "a" : 12345678901234567890.10, "a":1e400,"\u00e9\/":"\u00E9\/{%", "x":[ ] }`;
    const text = `[${around},"\\u00e9\\/ ${number} \\u0041",\n${around}]`;
    const written = `[${around},"\\u00e9\\/ ${card.number} \\u0041",\n${around}]`;
    assert.equal(write(text, 'json'), written);
  });

  it('is refused where it would let a value end its string', () => {
    throwsAt(() => write(String.raw`["\{{ quote }}"]`, 'json'), /at character 2, expected JSON/);
    throwsAt(() => write(String.raw`["\x {{ quote }}"]`, 'json'), /at character 2, expected JSON/);
    throwsAt(() => write('["{{ quote }}', 'json'), /at character 2, expected JSON/);
    throwsAt(() => write('["{{ quote', 'json'), /expected JSON, of which this string does not end/);
  });

  it('of any depth is read', () => {
    const depth = 200_000;
    const text = `${'['.repeat(depth)}"{{ true }}"${']'.repeat(depth)}`;
    assert.equal(write(text, 'json'), text.replace('"{{ true }}"', 'true'));
  });

  it('as a value keeps its form', () => {
    const value = { type: 'card', data: { number, '{{ x }}': ['{{ card }}', 1, null] } };
    assert.deepEqual(evaluateValue(compileValue(value), scope), {
      type: 'card',
      data: { number: card.number, '{{ x }}': [card, 1, null] },
    });
  });
});

describe('XML', () => {
  const expected: readonly (readonly [what: string, text: string, written: string])[] = [
    ['text', '<a>no {{ quote }}</a>', '<a>no &quot;</a>'],
    ['an object', '<a>{{ true }}{{ card | json: "$.flags" }}</a>', '<a>true[true,null]</a>'],
    ['an attribute', `<a b="{{ lines }}" c='{{ quote }}'/>`, `<a b="a&#13;&#10;b" c='&quot;'/>`],
    [
      'an escaped expression',
      '<a b="{{ card | json: &quot;$.number&quot; }}"/>',
      `<a b="${card.number}"/>`,
    ],
    ['escaped by number', '<a>{{ card | json: &#39;$.number&#x27; }}</a>', `<a>${card.number}</a>`],
    ['a CDATA section', '<a><![CDATA[<{{ quote }}>]]></a>', '<a><![CDATA[<">]]></a>'],
    ['the end of a section', '<![CDATA[{{ end of CDATA }}]]>', '<![CDATA[]]]]><![CDATA[>]]>'],
    [
      'structure is kept',
      '<?a "?><!-- \' --><!DOCTYPE a [<!-- don\'t --><!ENTITY b ">">]><a x=">">{{ true }}</a >\n',
      '<?a "?><!-- \' --><!DOCTYPE a [<!-- don\'t --><!ENTITY b ">">]><a x=">">true</a >\n',
    ],
  ];
  for (const [what, text, written] of expected) {
    it(what, () => assert.equal(write(text, 'xml'), written));
  }

  for (const text of [
    '<!-- {{ card }} --><a/>',
    '<?p {{ card }}?><a/>',
    '<!DOCTYPE a [<!ENTITY b "{{ card }}">]><a/>',
    '<{{ card }}/>',
    '<a {{ card }}="1"/>',
    '<a b={{ card }} />',
    '</{{ card }}>',
  ]) {
    it(`has no expression in ${text}`, () => {
      const place = new RegExp(`at character ${text.indexOf('{{') + 1}, expected no expression`);
      throwsAt(() => compileText(text, 'xml'), place);
    });
  }

  it('that does not end is refused', () => {
    for (const text of [
      '<a b="{{ card }}',
      '<![CDATA[ {{ card }}',
      '<!-- {{',
      '<?{{',
      '<!X {{',
      '<a {{',
    ]) {
      throwsAt(() => compileText(text, 'xml'), /at character 1, expected XML/);
    }
  });

  it('refuses characters that it cannot hold', () => {
    for (const value of ['\u0000', '\u000b', '\ufffe', '\ud800']) {
      for (const text of ['<a>{{ x }}</a>', '<a b="{{ x }}"/>', '<![CDATA[{{ x }}]]>']) {
        throwsAt(
          () => write(text, 'xml', holding(value)),
          /gives a character that XML cannot hold/,
        );
      }
    }
  });
});

describe('an address', () => {
  const encoded = '%7B%7B%20card%20%7C%20json%3A%20%27%24.number%27%20%7D%7D';
  const expected: readonly (readonly [TextForm, string, string])[] = [
    ['form', 'a={{ quote }}&b=1', 'a=%22&b=1'],
    [
      'form',
      'a=%7B%7B+card+%7C+json%3A+%27%24.number%27+%7D%7D&b=%zz+%41',
      `a=${card.number}&b=%zz+%41`,
    ],
    ['form', "a=%7B{ card | json: '$.number' }%7d", `a=${card.number}`],
    [
      'form',
      'a=%7B%25+raw+%25%7D%7B%7B+card+%7D%7D%7B%25+endraw+%25%7D&b={{ true }}',
      'a=%7B%7B+card+%7D%7D&b=true',
    ],
    ['query', `a=${encoded}&b=x+y`, `a=${card.number}&b=x+y`],
    ['query', 'a={{+o%27brien+%40+home+}}', 'a=O%E2%80%99Brien'],
    ['path', `/cards/${encoded}/x`, `/cards/${card.number}/x`],
    ['path', '/a/{{ o%27brien @ home }}', '/a/O%E2%80%99Brien'],
    ['path', '/a/x{{ dots }}/..', '/a/x../..'],
    ['path', '/a/{{ encoded dots }}', '/a/%252e%252E'],
  ];
  for (const [form, text, written] of expected) {
    it(`${form} ${text}`, () => assert.equal(write(text, form), written));
  }

  it('has no segment of dots or of nothing that an expression made', () => {
    for (const text of [
      '/a/{{ dots }}',
      '/{{ dot }}/b',
      '/.{{ dot }}',
      '/%2E{{ dot }}',
      '/{{ empty }}',
      '/a/{{ nope }}',
      '/a\\{{ dots }}\\b',
      '/..{{ empty }}/b',
    ]) {
      throwsAt(() => write(text, 'path'), /must not be empty, "\." or "\.\."/);
    }
  });

  it('cannot hold half of a character', () => {
    for (const form of ['path', 'query', 'form'] as const) {
      throwsAt(
        () => write('/{{ x }}', form, holding('\ud800')),
        /at character 2: gives text with half/,
      );
    }
  });
});

describe('a header', () => {
  it('has the value as it is', () => {
    assert.equal(write('Bearer {{ config: KEY }}', 'header'), 'Bearer secret');
    assert.equal(write('{{ x }}', 'header', holding('\t ~é')), '\t ~é');
  });

  for (const value of ['a\r\nX: y', '\n', '\r', '\u0000', '\u007f', '\u001b', '’']) {
    it(`is refused with ${JSON.stringify(value)}`, () => {
      throwsAt(
        () => write('a {{ x }}', 'header', holding(value)),
        /at character 3: gives a character that a header/,
      );
    });
  }
});

describe('names besides tokens', () => {
  const expected: readonly (readonly [string, string])[] = [
    ['{{ token: card | json: "$.id" }}', 'card'],
    ['{{ token_intent: card | json: "$.id" }}', 'intent'],
    ['{{ config: KEY }}', 'secret'],
    ['{{config:a b|upcase}}', 'C'],
    ['{{ proxy.config.KEY }}', 'secret'],
    ['{{ proxy.request.headers.X-Request-Id | upcase }}', 'R1'],
    ["{{ proxy.request.headers['X-Request-Id'] }}", 'r1'],
    ['{{ proxy.request.body }}', '{"a":1}'],
    ["{{ card | json: '$.number' | append: proxy.request.body | last4 }}", '":1}'],
    // Of OpenSSL: printf '{"a":1}r1' | openssl dgst -sha256 -hmac secret
    [
      '{{ proxy.request.body | append: proxy.request.headers.X-Request-Id ' +
        "| hmac: 'sha-256', proxy.config.KEY | to_base16 }}",
      '3150B67944E8183942EBB5D9B57F32AA2F32D863FA0C87D333FCAD753B3AA62E',
    ],
    ["{{ encrypted | json: '$.data.number' }}", '4000056655665556'],
    ['{{ encrypted.data.number }}', '4000056655665556'],
    ["{{ tokenize_transform: 'card-1' | json: '$.id' }}", 'tok'],
    ["{{ transform_identifier: 'card-1' | json: '$.id' }}", 'tok'],
    ['{{ res.a[0].b }}', '5'],
    ["{{ res.json | json: '$.a[0].b' }}", '5'],
    ['{{ res.json.json }}', 'inner'],
    ["{{ res | json: '$.json' }}", 'inner'],
    ['{{ true | append: res.json.json }}', 'trueinner'],
    ['{{ res.nope.deeper }}', ''],
  ];
  for (const [text, written] of expected) {
    it(text, () => assert.equal(write(text, 'text'), written));
  }

  const unknown: readonly (readonly [text: string, message: RegExp])[] = [
    ['a {{ config: NOPE }}', /^the expression at character 3: names an entry/],
    ['{{ proxy.config.NOPE }}', /^the expression at character 1: names what this request/],
    ['{{ proxy.request.headers.x-request-id }}', /names what this request does not have/],
    ['{{ proxy.nope }}', /names what this request does not have/],
    ['{{ card | append: proxy.config.NOPE }}', /names what this request does not have/],
    ['{{ card | append: nope }}', /a filter is given an unknown name/],
    ['{{ card | append: config.KEY }}', /a filter is given an unknown name/],
    ["{{ tokenize_transform: 'nope' }}", /names a transform/],
    ['{{ tokenize_transform: card-1 }}', /expected the identifier of a transform/],
    ['{{ config: }}', /expected the name of an entry/],
    ['{{ config: constructor }}', /names an entry/],
    ['{{ proxy.config.constructor }}', /names what this request/],
    ['{{ | upcase }}', /expected the id of a token/],
    [`{{ ${'a'.repeat(401)} }}`, /expected the id of a token/],
    ['{{ card | nope }}', /at character 1, expected a supported filter/],
    ['{{ card', /at character 1, expected "}}"/],
    ['{{ proxy.request.body', /at character 1, expected "}}"/],
  ];
  for (const [text, message] of unknown) {
    it(`${text} is refused with its place`, () => throwsAt(() => write(text, 'text'), message));
  }

  it('are refused where they are not available', () => {
    const none = holding(null);
    for (const text of [
      '{{ config: KEY }}',
      '{{ proxy.config.KEY }}',
      '{{ encrypted }}',
      '{{ res.json }}',
      '{{ x | append: res.json }}',
    ]) {
      throwsAt(() => write(text, 'text', none), /is not available here/);
    }
    throwsAt(() => write("{{ tokenize_transform: 'a' }}", 'text', none), /names a transform/);
  });

  it('are not taken for references, which are listed once', () => {
    const text = `${number}{{ token: card }}{{ res.a }}{{ config: KEY }}{{ card }}{{ proxyx }}`;
    const { references, expressionCount } = compileText(text, 'text');
    assert.equal(expressionCount, 6);
    assert.deepEqual(references, [
      { kind: 'data', id: 'card' },
      { kind: 'token', id: 'card' },
      { kind: 'data', id: 'proxyx' },
    ]);
  });
});
