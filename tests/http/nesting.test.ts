/** Nesting of bodies and lines: bounded where they are parsed, whatever shape was expected. */
import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import { isNestedDeeper, nestingMax } from '../../src/base/json.ts';
import { bodyNestingMax } from '../../src/http/protocol/nesting.ts';
import { onBothEngines } from '../support/engines.ts';
import { bulk } from '../support/lines.ts';
import { tenantsOf } from '../support/tenant.ts';

const lists = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;

const beyond = `must not be nested deeper than ${bodyNestingMax} levels`;

describe('the levels of JSON', () => {
  const deeper = (text: string, levels: number) => isNestedDeeper(Buffer.from(text), levels);

  it('are counted before it is parsed, up to the limit and beyond it', () => {
    for (const nested of [lists, objects]) {
      assert.equal(deeper(nested(bodyNestingMax), bodyNestingMax), false);
      assert.equal(deeper(nested(bodyNestingMax + 1), bodyNestingMax), true);
    }
    const wide = JSON.stringify(new Array(1000).fill([{ a: [] }]));
    assert.deepEqual([deeper(wide, 4), deeper(wide, 3)], [false, true]);
  });

  it('are those of the values, and not what stands in a text', () => {
    const levelsOf = (value: unknown): number =>
      typeof value === 'object' && value !== null
        ? 1 + Math.max(0, ...Object.values(value).map(levelsOf))
        : 0;
    const text = fc.string({ unit: fc.constantFrom('[', '{', '"', '\\', '}', ']', 'é') });
    const json = fc.letrec<{ json: unknown }>((tie) => ({
      json: fc.oneof(
        { depthSize: 'large' },
        text,
        fc.array(tie('json'), { maxLength: 3 }),
        fc.dictionary(text, tie('json'), { maxKeys: 3 }),
      ),
    })).json;
    const property = fc.property(json, fc.integer({ min: 1, max: 6 }), (value, levels) => {
      assert.equal(deeper(JSON.stringify(value), levels), levelsOf(value) > levels);
    });
    fc.assert(property, { numRuns: 2000 });
  });
});

onBothEngines('Nested bodies', (engine) => {
  const tenants = tenantsOf(engine);

  test('400: a body nested beyond the limit, of any shape, names the attribute, and nothing is stored', async () => {
    const tenant = await tenants();
    const deep = objects(3000);
    const refused: readonly (readonly [path: string, body: string, attribute: string])[] = [
      ['/tokens', `{"type":"token","data":1,"unknown":${deep}}`, 'unknown'],
      ['/tokens', `{"type":${deep}}`, 'type'],
      ['/tokens', `{"4242 4242":${deep}}`, 'body'],
      ['/tokens', lists(3000), 'body'],
      ['/tokenize', deep, 'a'],
      ['/detokenize', lists(bodyNestingMax + 1), 'body'],
      ['/tokens/search', `{"query":${deep}}`, 'query'],
    ];
    for (const [path, body, attribute] of refused) {
      const answer = await tenant.send('POST', path, { body });
      assert.equal(answer.status, 400, `${path} ${answer.text}`);
      assert.deepEqual(answer.body.errors, { [attribute]: [beyond] });
    }
    assert.equal((await tenant.counts())['tokens'], 0);
  });

  test('200: data nested to its limit in a body of tokenize nested to its limit; 400 one level deeper', async () => {
    const tenant = await tenants();
    const within = (outer: number, data: number) =>
      `${'['.repeat(outer)}{"type":"token","data":${objects(data)}}${']'.repeat(outer)}`;
    const most = await tenant.send('POST', '/tokenize', { body: within(63, nestingMax) });
    assert.equal(most.status, 200, most.text);
    for (const body of [within(64, nestingMax), within(63, nestingMax + 1)]) {
      assert.equal((await tenant.send('POST', '/tokenize', { body })).status, 400);
    }
  });

  test('400: of lines only the one that is nested beyond the limit fails', async () => {
    const tenant = await tenants();
    const lines = [
      { type: 'token', data: 1 },
      `{"type":"token","data":1,"unknown":${objects(3000)}}`,
      `{"type":"token","data":${objects(3000)}}`,
      lists(3000),
      { type: 'token', data: 2 },
    ];
    const answered = await bulk(tenant, lines);
    assert.deepEqual(
      answered.map(({ status }) => status),
      [201, 400, 400, 400, 201],
    );
    assert.deepEqual(
      answered.slice(1, 4).map(({ problem }) => problem.errors),
      [{ unknown: [beyond] }, { data: [beyond] }, { line: [beyond] }],
    );
    assert.equal((await tenant.counts())['tokens'], 2);
  });

  test('400: patches one after another never make data nested beyond its limit', async () => {
    const tenant = await tenants();
    const { id } = (await tenant.token({ type: 'token', data: { a: 1 } })).body;
    const patch = (data: string) =>
      tenant.send('PATCH', `/tokens/${id}`, { body: `{"data":${data}}` });
    assert.equal((await patch(objects(nestingMax))).status, 200);
    const wider = `${'{"a":'.repeat(nestingMax - 1)}{"b":2}${'}'.repeat(nestingMax - 1)}`;
    assert.equal((await patch(wider)).status, 200);
    const deeper = `${'{"a":'.repeat(nestingMax - 1)}{"b":{}}${'}'.repeat(nestingMax - 1)}`;
    const refused = await patch(deeper);
    assert.equal(refused.status, 400);
    assert.deepEqual(Object.keys(refused.body.errors), ['data']);
  });
});
