/** What entries say of who asked: their text, beside the text of releases that recorded no source. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatEntry, parseLine } from '../../src/audit/records.ts';
import type { Instant } from '../../src/base/clock.ts';
import type { TenantId } from '../../src/base/ids.ts';
import {
  chainBlock,
  isExact,
  openBlock,
  textsOf,
  writtenEntry,
} from '../../src/store/log-chain/block.ts';
import { LogChain } from '../../src/store/log-chain/chain.ts';
import {
  factsOf,
  type StatedEntry,
  streamSeed,
  textOf,
} from '../../src/store/log-chain/entries.ts';

const tenant = '00000000-0000-4000-8000-000000000001' as TenantId;
const stream = '00000000-0000-4000-8000-00000000000a';
const [application, session, key] = ['b', 'c', 'd'].map(
  (last) => `00000000-0000-4000-8000-00000000000${last}`,
) as [string, string, string];

const bySession: StatedEntry = {
  tenant_id: tenant,
  created_at: 1_800_000_000_000 as Instant,
  actor_id: session,
  actor_type: 'session',
  entity_type: 'token',
  entity_id: 't',
  operation: 'read',
  message: 'Token retrieved',
  result: 'success',
  disclosure: 'rg',
  origin: '203.0.113.7',
  trace_id: 'trace',
  source: {
    application_id: application,
    key_id: key,
    person_id: null,
    person_name: null,
    user_agent: 'curl/8.5.0',
    forwarded: '10.0.0.2',
  },
  container: '/pci/high/',
  state: null,
};

test('an entry says key, application, user agent, proxies and container in these bytes', () => {
  assert.equal(
    textOf(bySession, null),
    `[["session","${session}","${key}","${application}"],["203.0.113.7","curl/8.5.0","10.0.0.2"],` +
      '"token","read","Token retrieved","success","rg","/pci/high/",1800000000000,"t","trace"]',
  );
});

test('an entry without a source keeps the bytes that earlier releases wrote', () => {
  const earlier = { ...bySession, source: null, container: null };
  const text = textOf(earlier, '+1.x');
  assert.equal(
    text,
    `["${session}","session","203.0.113.7","token","read","Token retrieved","success","rg",` +
      '1800000000000,"t","trace","+1.x"]',
  );
  const { tenant_id: _, ...facts } = { ...earlier, state: '+1.x' };
  assert.deepEqual(factsOf(text), facts);
});

const maybe = (one: string) => fc.constantFrom(null, one, '', 'a,"b" ☃');
const anyEntry: fc.Arbitrary<StatedEntry> = fc
  .record(
    {
      tenant_id: fc.constant(tenant),
      created_at: fc.integer({ min: 0, max: 900 }).map((ms) => (1_800_000_000_000 + ms) as Instant),
      actor_id: maybe(application),
      actor_type: fc.constantFrom('application', 'session', 'system'),
      entity_type: fc.constantFrom('token', 'log'),
      entity_id: fc.constantFrom('t', 'u', 'v'),
      operation: fc.constantFrom('read', 'delete'),
      message: fc.constant('m'),
      result: fc.constantFrom('success', 'denied'),
      disclosure: fc.constantFrom(null, 'rg' as const, 'ml' as const),
      origin: maybe('203.0.113.7'),
      trace_id: maybe('trace mark'),
      source: fc.option(
        fc.record(
          {
            application_id: maybe(application),
            key_id: maybe(key),
            person_id: maybe('person'),
            person_name: maybe('Ada'),
            user_agent: maybe('curl/8.5.0'),
            forwarded: maybe('10.0.0.2'),
          },
          { noNullPrototype: true },
        ),
      ),
      container: maybe('/pci/high/'),
      state: maybe('+1.x'),
    },
    { noNullPrototype: true },
  )
  .map((entry) => (entry.source ? entry : { ...entry, container: null }));

test('whatever an entry says comes back from its text, its block, and its line of an export', () => {
  fc.assert(
    fc.property(fc.array(anyEntry, { minLength: 1, maxLength: 30 }), (entries) => {
      const chain = new LogChain(stream);
      const written = entries.map((one) => writtenEntry(one, one.state));
      const { blocks } = chain.continue([{ entries: written, provers: [] }]);
      assert.equal(blocks.length, 1);
      for (const { block } of blocks) {
        assert.ok(isExact(block, textsOf(block.body)));
        const opened = openBlock(block) ?? [];
        assert.deepEqual(
          opened.map(({ stream_id: _, seq: __, ...entry }) => entry),
          entries,
        );
        for (const entry of chainBlock(streamSeed(tenant, stream), block)) {
          const line = formatEntry(entry);
          assert.deepEqual(parseLine(line.trimEnd(), 1), {
            kind: 'entries',
            entries: [{ kind: 'entry', ...JSON.parse(line), ...entry }],
          });
        }
      }
    }),
    { numRuns: 200 },
  );
});

test('a text that the vault would not have written is no entry', () => {
  const text = textOf(bySession, null);
  for (const other of [
    text.replace(`,"${application}"]`, `,"${application}",null]`),
    text.replace('"10.0.0.2"]', '"10.0.0.2","x"]'),
    text.replace('"session"', 'null'),
    text.replace('["203.0.113.7",', '[1,'),
    text.replace('"/pci/high/"', '7'),
    text.replace('"rg"', '"zz"'),
  ]) {
    assert.notEqual(other, text);
    assert.equal(factsOf(other), undefined, other);
  }
});
