/** Lists by search terms: counted and paged in the index of terms alone, and yet exactly as the tokens are. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Instant } from '../../src/base/clock.ts';
import type { Container } from '../../src/base/container.ts';
import type { TokenId } from '../../src/base/ids.ts';
import type { TextPattern } from '../../src/store/queries/text-patterns.ts';
import type { TokenConditions } from '../../src/store/queries/token-conditions.ts';
import type { Store } from '../../src/store/store.ts';
import type { Row } from '../../src/store/tables.ts';
import { findTokens, findTokensAt, occurrencesMax } from '../../src/tokens/search/choose-index.ts';
import { entry, now, tenant, termOf, token } from '../support/changes.ts';
import { onBothEngines } from '../support/engines.ts';
import { casesOf } from '../support/random.ts';

const containers = ['/a/', '/a/b/', '/z/'] as Container[];
const types = ['token', 'card'] as const;
const many = 2 * occurrencesMax;

/** How often a token is found under each term: half of them, two thirds, and a few. */
const terms = { half: 2, thirds: 3, rare: 97 } as const;
type Term = keyof typeof terms;

const hasTerm = (index: number, term: Term) =>
  term === 'thirds' ? index % terms.thirds !== 0 : index % terms[term] === 0;

interface Numbered {
  readonly index: number;
  readonly row: Row<'tokens'>;
}

const rows: readonly Numbered[] = Array.from({ length: many + many / 2 }, (_, index) => ({
  index,
  row: token(`t-${(index * 7919) % 10_007}`, {
    container: containers[index % containers.length] as Container,
    type: types[index % 5 === 0 ? 1 : 0],
    expires_at: index % 11 === 0 ? now : index % 13 === 0 ? ((now + 1) as Instant) : null,
    // Ties, as many tokens of one body of lines have.
    created_at: (now - Math.floor(index / 50)) as Instant,
  }),
}));

async function seed(store: Store): Promise<void> {
  const search_terms = rows.flatMap(({ index, row }) =>
    (Object.keys(terms) as Term[])
      .filter((term) => hasTerm(index, term))
      .map((term) => termOf(row, term)),
  );
  const insert = { tokens: rows.map(({ row }) => row), search_terms };
  assert.deepEqual(await store.commit({ insert, entries: [entry('*')] }), {});
}

const newestFirst = ({ row: a }: Numbered, { row: b }: Numbered) =>
  b.created_at - a.created_at || Buffer.compare(Buffer.from(b.token_id), Buffer.from(a.token_id));

const containerPattern = fc.record({
  text: fc.constantFrom('/', '/a/', '/a/b/', '/z/'),
  exact: fc.boolean(),
});
const idPattern = fc.constantFrom(
  { text: '', exact: false },
  { text: 't-1', exact: false },
  { text: 't-7919', exact: true },
);
const question = fc.record({
  terms: fc.subarray(Object.keys(terms) as Term[], { minLength: 1 }),
  scopes: fc.array(fc.record({ id: idPattern, container: containerPattern }), { maxLength: 2 }),
  container: fc.option(fc.constant({ text: '/a/', exact: false }), { nil: undefined }),
  type: fc.option(fc.constantFrom(...types), { nil: undefined }),
  skipped: fc.nat({ max: 300 }),
});

const everything = { id: { text: '', exact: false }, container: { text: '/', exact: false } };

function matches({ text, exact }: TextPattern, value: string): boolean {
  return exact ? value === text : value.startsWith(text);
}

function meets({ index, row }: Numbered, conditions: TokenConditions): boolean {
  const { scopes, container, type } = conditions;
  return (
    (row.expires_at === null || row.expires_at > now) &&
    conditions.terms.every((term) => hasTerm(index, term as Term)) &&
    scopes.some((one) => matches(one.id, row.token_id) && matches(one.container, row.container)) &&
    (container === undefined || matches(container, row.container)) &&
    (type === undefined || type === row.type)
  );
}

onBothEngines('a list by search terms, common and rare,', (engine) => {
  test('counts and finds exactly the tokens that meet all conditions', async (t) => {
    const store = await engine.store(t);
    await seed(store);
    const check = fc.asyncProperty(question, async ({ scopes, skipped, ...asked }) => {
      const conditions: TokenConditions = {
        tenant,
        now,
        scopes: scopes.length === 0 ? [everything] : scopes,
        metadata: [],
        ...asked,
      };
      const expected = rows
        .filter((one) => meets(one, conditions))
        .toSorted(newestFirst)
        .map(({ row }) => row);
      const idsOf = (found: readonly { readonly token_id: TokenId }[]) =>
        found.map(({ token_id }) => token_id);
      const at = await findTokensAt(store, conditions, {
        offset: skipped,
        limit: 20,
        payer: 'vault',
      });
      assert.equal(at.total, expected.length);
      assert.deepEqual(idsOf(at.rows), idsOf(expected.slice(skipped, skipped + 20)));
      const last = expected[skipped];
      const after = last && { at: last.created_at, id: last.token_id };
      const next = await findTokens(store, conditions, { after, limit: 20, payer: 'vault' });
      const from = after === undefined ? 0 : skipped + 1;
      assert.deepEqual(idsOf(next), idsOf(expected.slice(from, from + 20)));
    });
    await fc.assert(check, { numRuns: casesOf({ all: 120, drawn: 40 }) });
  });
});
