/** Concurrent merge patches of one token: there is always an order in which they were done one by one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { onBothEngines } from '../support/engines.ts';
import { casesOf } from '../support/random.ts';
import { newTenant } from '../support/tenant.ts';
import { type Received, startVault } from '../support/vault.ts';

type Value = null | number | string | { [name: string]: Value };
type Patch = { readonly data?: Value; readonly metadata?: Value };

const runs = casesOf({ all: 25, drawn: 10 });
const patchesMax = 7;

/** RFC 7386, section 2, word by word. */
function merged(target: Value | undefined, patch: Value): Value {
  if (typeof patch !== 'object' || patch === null) return patch;
  const result = typeof target === 'object' && target !== null ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merged(result[name], value);
  }
  return result;
}

interface Done {
  readonly patch: Patch;
  readonly answer: Received;
}

/** True when some order of the patches explains what each of them was answered, and what is left. */
function isExplained(state: Patch, done: readonly Done[], end: Patch): boolean {
  if (done.length === 0) return isDeepStrictEqual(state, end);
  return done.some(({ patch, answer }, index) => {
    const next = {
      data: merged(state.data, patch.data ?? {}),
      metadata: merged(state.metadata, patch.metadata ?? {}),
    };
    const { data, metadata } = answer.body;
    if (!isDeepStrictEqual(next, { data, metadata })) return false;
    return isExplained(next, done.toSpliced(index, 1), end);
  });
}

const names = fc.constantFrom('a', 'b', 'c');
const leaf = fc.oneof(fc.constant(null), fc.nat(9));
const inner = fc.dictionary(names, leaf, { maxKeys: 3, noNullPrototype: true });
const data = fc.dictionary(names, fc.oneof(leaf, inner), { maxKeys: 3, noNullPrototype: true });
const metadata = fc.dictionary(names, fc.option(fc.constantFrom('x', 'y')), {
  maxKeys: 2,
  noNullPrototype: true,
});
const patches = fc.array(fc.record({ data, metadata }, { requiredKeys: [] }), {
  minLength: 2,
  maxLength: patchesMax,
});

onBothEngines('Concurrent merge patches', (engine) => {
  test('over two servers lose no update, whatever they patch', async (t) => {
    const vault = await startVault(t, engine);
    const second = await startVault(t, engine, { place: vault.place, clock: vault.clock });
    const { key, send, token } = await newTenant(vault);
    await fc.assert(
      fc.asyncProperty(patches, async (given) => {
        const start = { data: { a: 0 }, metadata: { b: 'x' } };
        const { id } = (await token({ type: 'token', ...start })).body;
        const done = await Promise.all(
          given.map(async (patch, index) => {
            const server = index % 2 === 0 ? vault : second;
            const answer = await server.send('PATCH', `/tokens/${id}`, { key, body: patch });
            assert.equal(answer.status, 200, answer.text);
            return { patch, answer };
          }),
        );
        const { body } = await send('GET', `/tokens/${id}`);
        assert.ok(isExplained(start, done, { data: body.data, metadata: body.metadata }));
      }),
      { numRuns: runs },
    );
  });
});

test('the check can fail: a lost update has no order that explains it', () => {
  const answer = (data: Value) => ({ body: { data, metadata: {} } }) as Received;
  const done = [
    { patch: { data: { a: 1 } }, answer: answer({ a: 1 }) },
    { patch: { data: { b: 2 } }, answer: answer({ b: 2 }) },
  ];
  const start = { data: {}, metadata: {} };
  assert.equal(isExplained(start, done, { data: { b: 2 }, metadata: {} }), false);
  const second = { patch: { data: { b: 2 } }, answer: answer({ a: 1, b: 2 }) };
  const [first] = done;
  assert.ok(first);
  const end = { data: { a: 1, b: 2 }, metadata: {} };
  assert.equal(isExplained(start, [second, first], end), true);
});
