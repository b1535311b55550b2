/** Definitions of transforms: what is wrong is named, and nothing else is accepted. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VaultError } from '../../src/base/errors.ts';
import type { Json } from '../../src/base/json.ts';
import { createValidationErrors } from '../../src/base/validation-errors.ts';
import { valueLengthMax } from '../../src/proxies/transforms/attributes.ts';
import {
  parseRequestTransforms,
  parseResponseTransforms,
  transformsMax,
} from '../../src/proxies/transforms/definitions.ts';

type Parse = typeof parseRequestTransforms | typeof parseResponseTransforms;

function parsed(parse: Parse, given: Json | undefined) {
  const errors = createValidationErrors();
  const transforms = parse(given, errors);
  errors.settle();
  return transforms;
}

function errorsOf(parse: Parse, given: Json): Readonly<Record<string, readonly string[]>> {
  try {
    parsed(parse, given);
  } catch (error) {
    assert.ok(error instanceof VaultError);
    return error.errors ?? {};
  }
  return assert.fail('was accepted');
}

const tokenize = {
  type: 'tokenize',
  options: { token: { type: 'card', data: '{{ encrypted }}' } },
};
const mask = { type: 'mask', matcher: 'regex', expression: '(a)', replacement: '*' };
const append = (type: string, options: Json) => ({ type, options });

describe('valid transforms', () => {
  it('are none where there is no list', () => {
    for (const given of [undefined, null, []]) {
      assert.deepEqual(parsed(parseRequestTransforms, given), []);
      assert.deepEqual(parsed(parseResponseTransforms, given), []);
    }
  });

  it('of requests', () => {
    const { token } = tokenize.options;
    const named = { ...tokenize, code: null, options: { token, identifier: 'a-1_B' } };
    assert.deepEqual(parsed(parseRequestTransforms, [tokenize, named]), [
      { type: 'tokenize', token, identifier: undefined },
      { type: 'tokenize', token, identifier: 'a-1_B' },
    ]);
  });

  it('of responses', () => {
    const [first, ...others] = parsed(parseResponseTransforms, [
      mask,
      append('append_json', { value: '{{ res.a }}', location: "$.a['b'][0]" }),
      append('append_text', { value: 'x' }),
      append('append_header', { value: '{{ config: A }}', location: 'X-A' }),
    ]);
    assert.equal(first?.type === 'mask' && first.replacement, '*');
    assert.deepEqual(others, [
      { type: 'append_json', value: '{{ res.a }}', location: ['a', 'b', 0] },
      { type: 'append_text', value: 'x' },
      { type: 'append_header', value: '{{ config: A }}', location: 'X-A' },
    ]);
  });
});

describe('a transform of type code', () => {
  it('has a runtime of its own, or the default one', () => {
    const runtime = { image: 'node22', timeout: 30, permissions: ['token:read'] };
    const [plain, given] = [
      parsed(parseRequestTransforms, [{ code: 'x'.repeat(50_000) }])[0],
      parsed(parseRequestTransforms, [{ type: 'code', code: 'x', options: { runtime } }])[0],
    ];
    assert.ok(plain?.type === 'code' && given?.type === 'code');
    assert.deepEqual(plain.runtime, {
      image: 'node-bt',
      async: false,
      dependencies: {},
      resolutions: {},
      timeout: null,
      warm_concurrency: 0,
      resources: 'standard',
      permissions: [],
    });
    assert.deepEqual(given.runtime, { ...plain.runtime, ...runtime });
  });
});

describe('a response transform is refused', () => {
  const json = (options: Json) => append('append_json', options);
  const header = (options: Json) => append('append_header', options);
  const refused: readonly (readonly [what: string, given: Json, path: string, message: RegExp])[] =
    [
      ['no code', { type: 'code' }, '.code', /must have 1 to 50000 valid Unicode characters/],
      ['code that is too long', { code: 'x'.repeat(50_001) }, '.code', /1 to 50000/],
      [
        'code that nobody waits for',
        { code: 'x', options: { runtime: { image: 'node22', async: true } } },
        '.options.runtime.async',
        /is for reactors alone/,
      ],
      [
        'a runtime of another image',
        { code: 'x', options: { runtime: { dependencies: {} } } },
        '.options.runtime.dependencies',
        /needs the image node22/,
      ],
      ['another type', { type: 'constructor' }, '.type', /must be one of code, mask, tokenize/],
      ['a type that is no text', { type: 1 }, '.type', /must be one of/],
      ['no object', 'x', '', /must be an object/],
      ['options that are no object', { ...tokenize, options: [] }, '.options', /must be an object/],
      [
        'an attribute of another type',
        { ...tokenize, matcher: 'regex' },
        '.matcher',
        /must be absent/,
      ],
      [
        'options of another type',
        json({ token: {}, value: 'x', location: '$.a' }),
        '.options.token',
        /must be absent/,
      ],
      ['an unknown attribute', { ...mask, '4242': 1 }, '', /has an unknown attribute/],
      ['no matcher', { ...mask, matcher: null }, '.matcher', /must be regex$/],
      [
        'the matcher of a payment format',
        { ...mask, matcher: 'chase_stratus_pan', expression: null },
        '.matcher',
        /chase_stratus_pan is not supported/,
      ],
      [
        'no expression',
        { ...mask, expression: null },
        '.expression',
        /must be a regular expression/,
      ],
      [
        'an expression without a group',
        { ...mask, expression: 'a' },
        '.expression',
        /capture group/,
      ],
      ['lookaround', { ...mask, expression: '(?=a)(b)' }, '.expression', /lookaround/],
      ['no replacement', { ...mask, replacement: null }, '.replacement', /exactly one character/],
      [
        'an empty replacement',
        { ...mask, replacement: '' },
        '.replacement',
        /exactly one character/,
      ],
      ['two characters', { ...mask, replacement: '**' }, '.replacement', /exactly one character/],
      ['half of a character', { ...mask, replacement: '\ud800' }, '.replacement', /exactly one/],
      ['no token', { type: 'tokenize' }, '.options.token', /must be an object/],
      [
        'a token that is a list',
        { type: 'tokenize', options: { token: [] } },
        '.options.token',
        /must be an object/,
      ],
      [
        'a token with no expression',
        { type: 'tokenize', options: { token: { a: ['{{ x'] } } },
        '.options.token',
        /at character 1, expected "}}"/,
      ],
      [
        'an identifier with a dot',
        { type: 'tokenize', options: { token: {}, identifier: 'a.b' } },
        '.options.identifier',
        /1 to 100 letters/,
      ],
      [
        'an identifier of 101',
        { type: 'tokenize', options: { token: {}, identifier: 'a'.repeat(101) } },
        '.options.identifier',
        /1 to 100/,
      ],
      ['no value', json({ location: '$.a' }), '.options.value', /must be text/],
      [
        'a value that is no text',
        json({ value: 1, location: '$.a' }),
        '.options.value',
        /must be text/,
      ],
      [
        'a value with no expression',
        json({ value: '{{ a | nope }}', location: '$.a' }),
        '.options.value',
        /supported filter/,
      ],
      [
        'a value beyond the limit',
        json({ value: 'a'.repeat(valueLengthMax + 1), location: '$.a' }),
        '.options.value',
        /at most 10000 characters/,
      ],
      ['no location', json({ value: 'x' }), '.options.location', /JSONPath of one place/],
      [
        'several places',
        json({ value: 'x', location: '$..a' }),
        '.options.location',
        /JSONPath of one place/,
      ],
      [
        'the whole body',
        json({ value: 'x', location: '$' }),
        '.options.location',
        /JSONPath of one place/,
      ],
      ['no name', header({ value: 'x' }), '.options.location', /name of a header/],
      [
        'a name with a space',
        header({ value: 'x', location: 'a b' }),
        '.options.location',
        /name of a header/,
      ],
      [
        'a header that frames',
        header({ value: 'x', location: 'Content-Length' }),
        '.options.location',
        /frames/,
      ],
      [
        'lines in a header',
        header({ value: 'a\r\nb', location: 'x' }),
        '.options.value',
        /header cannot hold/,
      ],
    ];
  for (const [what, given, path, message] of refused) {
    it(`for ${what}`, () => {
      const errors = errorsOf(parseResponseTransforms, [mask, given]);
      assert.match(
        errors[`response_transforms[1]${path}`]?.join() ?? '',
        message,
        JSON.stringify(errors),
      );
      assert.equal(Object.keys(errors).length, 1);
    });
  }
});

describe('a list is refused', () => {
  it('for what is no list, and beyond its limit', () => {
    const path = 'response_transforms';
    for (const given of [{}, 'x', 1, new Array<Json>(transformsMax + 1).fill(mask)]) {
      assert.match(String(errorsOf(parseResponseTransforms, given)[path]), /at most 20 transforms/);
    }
    const most = new Array<Json>(transformsMax).fill(mask);
    assert.equal(parsed(parseResponseTransforms, most).length, transformsMax);
  });

  it('for types of responses in requests', () => {
    for (const given of [mask, append('append_text', { value: 'x' })]) {
      const errors = errorsOf(parseRequestTransforms, [given]);
      assert.deepEqual(errors, { 'request_transforms[0].type': ['must be one of code, tokenize'] });
    }
  });

  it('for an identifier that two have', () => {
    const named = { type: 'tokenize', options: { token: {}, identifier: 'a' } };
    const errors = errorsOf(parseRequestTransforms, [named, tokenize, named]);
    assert.deepEqual(errors, {
      'request_transforms[2].options.identifier': ['must be unique in its list'],
    });
  });

  it('for two of type code', () => {
    const errors = errorsOf(parseRequestTransforms, [{ type: 'code', code: 'x' }, { code: 'x' }]);
    assert.match(String(errors['request_transforms']), /at most one transform of type code/);
  });
});
