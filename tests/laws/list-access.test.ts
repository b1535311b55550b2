/** Lists and rules agree: what a list finds in the database is what the rules grant, on random policies. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Instant } from '../../src/base/clock.ts';
import type { Container } from '../../src/base/container.ts';
import type { ApplicationId, TenantId, TokenId } from '../../src/base/ids.ts';
import { type AccessRule, decide, policyOf, scopesOf } from '../../src/rules/policy.ts';
import type { LogEntry } from '../../src/store/log-chain/entries.ts';
import { afterPrefix } from '../../src/store/queries/text-patterns.ts';
import type { TokenConditions } from '../../src/store/queries/token-conditions.ts';
import type { Store } from '../../src/store/store.ts';
import type { Row } from '../../src/store/tables.ts';
import { findTokens, findTokensAt } from '../../src/tokens/search/choose-index.ts';
import { onBothEngines } from '../support/engines.ts';
import { casesOf } from '../support/random.ts';

const tenant = '00000000-0000-4000-8000-000000000001' as TenantId;
const now = 1_800_000_000_000 as Instant;

const containers = ['/', '/a/', '/a/b/', '/a/b-c/', '/a/bb/', '/ab/', '/z/'] as Container[];
/** Around the ends of the ranges of code points, where prefixes and UTF-16 part ways. */
const heads = [
  'a',
  'a\u{10ffff}',
  'ab',
  'b',
  '\ud7ff',
  '\ue000',
  '\uffff',
  '\u{10000}',
  '\u{10ffff}',
];
const ids = heads.flatMap((head) => ['x', 'yy', 'yz'].map((tail) => head + tail)) as TokenId[];
const types = ['token', 'card'] as const;

const rows: Row<'tokens'>[] = ids.flatMap((id, index) =>
  containers.map((container, place) => ({
    tenant_id: tenant,
    token_id: `${id}${place}` as TokenId,
    version: 1,
    type: types[(index + place) % 2] ?? 'token',
    container,
    data: new Uint8Array([1]),
    mask: null,
    metadata: null,
    fingerprint: null,
    fingerprint_expression: null,
    deduplicated: 0,
    search_indexes: null,
    expires_at: index % 5 === 0 ? now : null,
    expires_offset: null,
    code_expires_at: null,
    created_by: 'a' as ApplicationId,
    // Ties of several tokens.
    created_at: (now - (index % 4)) as Instant,
    modified_by: null,
    modified_at: null,
  })),
);

const entry: LogEntry = {
  tenant_id: tenant,
  created_at: now,
  actor_id: null,
  actor_type: 'system',
  entity_type: 'token',
  entity_id: '*',
  operation: 'create',
  message: 'Token created',
  result: 'success',
  disclosure: null,
  source: null,
  container: null,
  origin: null,
  trace_id: null,
};

const condition = fc.oneof(
  fc.record({
    attribute: fc.constant('id' as const),
    operator: fc.constantFrom('equals' as const, 'starts_with' as const),
    value: fc.constantFrom(...heads, ...rows.slice(0, 20).map((row) => row.token_id as string)),
  }),
  fc.record({
    attribute: fc.constant('container' as const),
    operator: fc.constantFrom('equals' as const, 'starts_with' as const),
    value: fc.constantFrom(...containers, '/a', '/a/b'),
  }),
);

const place = fc.oneof(
  fc.record({ container: fc.constantFrom(...containers) }),
  fc.record({ conditions: fc.array(condition, { minLength: 1, maxLength: 3 }) }),
);

const access = fc.array(fc.tuple(place, fc.boolean()), { maxLength: 5 }).map((given) =>
  given.map(
    ([where, reads], index): AccessRule => ({
      ...where,
      priority: index + 1,
      permissions: [reads ? 'token:read' : 'token:search'],
      transform: 'reveal',
    }),
  ),
);

const filter = fc.record(
  {
    container: fc.constantFrom(...containers).map((text) => ({ text, exact: false })),
    type: fc.constantFrom(...types),
  },
  { requiredKeys: [] },
);

async function seed(store: Store): Promise<void> {
  const outcome = await store.commit({ insert: { tokens: rows }, entries: [entry] });
  assert.deepEqual(outcome, {});
}

const newestFirst = (a: Row<'tokens'>, b: Row<'tokens'>) =>
  b.created_at - a.created_at || Buffer.compare(Buffer.from(b.token_id), Buffer.from(a.token_id));

async function walk(store: Store, conditions: TokenConditions, limit: number): Promise<string[]> {
  const found: string[] = [];
  for (let after: Parameters<typeof findTokens>[2]['after']; ; ) {
    assert.ok(found.length <= rows.length, 'a walk ends');
    const page = await findTokens(store, conditions, { after, limit, payer: 'vault' });
    found.push(...page.map((row) => row.token_id));
    const last = page.at(-1);
    if (last === undefined) return found;
    after = { at: last.created_at, id: last.token_id };
  }
}

onBothEngines('a list', (engine) => {
  test('finds exactly the tokens that the rules grant, in order, page by page', async (t) => {
    const store = await engine.store(t);
    await seed(store);
    const check = fc.asyncProperty(
      access,
      filter,
      fc.integer({ min: 1, max: 40 }),
      async (rules, wanted, limit) => {
        const policy = policyOf({ permissions: [], rules });
        const conditions: TokenConditions = {
          tenant,
          now,
          scopes: scopesOf(policy, 'token:read'),
          terms: [],
          metadata: [],
          ...wanted,
        };
        const expected = rows
          .filter((row) => row.expires_at === null)
          .filter((row) =>
            decide(policy, 'token:read', { id: row.token_id, container: row.container }),
          )
          .filter((row) => row.container.startsWith(wanted.container?.text ?? ''))
          .filter((row) => wanted.type === undefined || row.type === wanted.type)
          .toSorted(newestFirst)
          .map((row) => row.token_id);
        assert.deepEqual(await walk(store, conditions, limit), expected);
        const at = await findTokensAt(store, conditions, {
          offset: 3,
          limit,
          payer: 'vault',
        });
        assert.equal(at.total, expected.length);
        assert.deepEqual(
          at.rows.map((row) => row.token_id),
          expected.slice(3, 3 + limit),
        );
      },
    );
    await fc.assert(check, { numRuns: casesOf({ all: 150, drawn: 50 }) });
  });
});

test('the texts that begin with a prefix are those from it up to the text after all of them', () => {
  const texts = fc.string({ unit: 'binary', maxLength: 4 });
  const bytes = (text: string) => Buffer.from(text);
  const check = fc.property(texts, texts, fc.boolean(), (prefix, tail, joined) => {
    const text = joined ? prefix + tail : tail;
    const end = afterPrefix(prefix);
    const inRange =
      Buffer.compare(bytes(text), bytes(prefix)) >= 0 &&
      (end === undefined || Buffer.compare(bytes(text), bytes(end)) < 0);
    assert.equal(inRange, text.startsWith(prefix));
  });
  fc.assert(check, { numRuns: casesOf({ all: 5000, drawn: 2000 }) });
});
