/** Nothing is opened without a grant and an entry: the compiler, the commit and the sources say so. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseInstant } from '../../src/base/clock.ts';
import { VaultError } from '../../src/base/errors.ts';
import { type ApplicationId, newUuid, type TenantId } from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { openJwe, readClientKey } from '../../src/keys/client-key.ts';
import { openingKeys, openText, sealText } from '../../src/keys/envelope.ts';
import { createKeyring } from '../../src/keys/keyring.ts';
import { authenticated, type Caller } from '../../src/rules/caller.ts';
import { entryOf } from '../../src/rules/log-entries.ts';
import { openerFor, openerOf } from '../../src/rules/openings.ts';
import { type Decide, perform } from '../../src/rules/operation.ts';
import { policyOf } from '../../src/rules/policy.ts';
import type { Change } from '../../src/store/change.ts';
import type { Store } from '../../src/store/store.ts';
import { committedPaths, importsOf, readSource } from '../support/source.ts';

const random = pooledRandom();
const tenant = newUuid<TenantId>(random);
const keyring = createKeyring(random);
const at = parseInstant(0);

function caller(): Caller {
  return authenticated({
    tenant: { id: tenant, keyring } as Caller['tenant'],
    application: newUuid<ApplicationId>(random),
    key: undefined,
    session: undefined,
    kind: 'private',
    policy: policyOf({ permissions: ['token:read'], rules: [] }),
    origin: { address: '', traceId: '', dialect: 'SVC' },
  });
}

/** Opens a token's data for a caller. */
function openOne(by: Caller, id: string): string {
  const binding = { tenant, id, field: 'data' };
  const sealed = sealText(keyring.sealing('data'), binding, 'value', random);
  const { grant } = openerFor(by, 'token:read');
  return openText(keyring.opening('data', grant), binding, sealed).reveal();
}

const route = { permission: 'token:update', method: 'PATCH', path: '/tokens/{id}' };

const performingFor = (by: Caller, store: Store) => ({
  store,
  actor: by,
  clock: { now: () => at },
  route,
});

/** What a store is asked to commit. */
function committing() {
  const changes: Change[] = [];
  const commit = async (change: Change) => {
    changes.push(change);
    return {};
  };
  return { changes, store: { commit } as unknown as Store };
}

const readOf = (by: Caller, id: string) =>
  entryOf(by, at, { entity: 'token', id, operation: 'read' });

suite('what opens', () => {
  test('does not compile without a grant', () => {
    const [binding, sealed, keys] = [{} as never, {} as never, keyring.sealing('data')];
    const compiled = () => {
      // @ts-expect-error keys that seal do not open
      openText(keys, binding, sealed);
      // @ts-expect-error the grant is missing
      keyring.opening('data');
      // @ts-expect-error a grant is made in src/rules alone
      openingKeys(keys, { opened: () => undefined });
      // @ts-expect-error a JWE takes one, too
      openJwe('', { id: '', key: readClientKey('') });
      // @ts-expect-error a tenant has keys and opens nothing by itself
      const opener: ReturnType<typeof openerOf> = { id: tenant, keyring };
      // @ts-expect-error no such job of the vault is named
      openerOf('look around', { id: tenant, keyring });
      return opener;
    };
    assert.equal(typeof compiled, 'function');
  });

  test('opens nothing by a permission that the caller does not hold', () => {
    assert.throws(() => openerFor(caller(), 'proxy:read'), { name: 'AssertionError' });
  });

  test('lets no effect be committed, and no response leave, that does not speak of it', async () => {
    const by = caller();
    const { changes, store } = committing();
    const deciding =
      (entry: string): Decide =>
      async () => {
        const body = { value: openOne(by, 'opened') };
        return { change: { entries: [readOf(by, entry)] }, reply: { status: 200, body } };
      };
    const performing = performingFor(by, store);
    await assert.rejects(perform(performing, deciding('other')), { name: 'AssertionError' });
    assert.deepEqual(changes, []);
    const { body } = await perform(performing, deciding('opened'));
    assert.deepEqual(body, { value: 'value' });
    const reachOut = async () => assert.fail('nothing is sent');
    const sending: Decide = async () => {
      openOne(by, 'opened');
      return { reachOut };
    };
    await assert.rejects(perform(performing, sending), { name: 'AssertionError' });
  });

  test('has an entry that says failed where the request is refused after it', async () => {
    const by = caller();
    const { changes, store } = committing();
    const refusal = new VaultError('forbidden', { public: 'no' });
    const refusing: Decide = async () => {
      openOne(by, 'opened');
      return { change: { entries: [readOf(by, 'other')] }, refusal };
    };
    await assert.rejects(perform(performingFor(by, store), refusing), { code: 'forbidden' });
    const results = changes.map(({ entries }) => entries.map((one) => [one.entity_id, one.result]));
    assert.deepEqual(results, [
      [
        ['other', 'success'],
        ['opened', 'failed'],
      ],
    ]);
  });

  test('has one where the decision fails after it, and none where nothing was opened', async () => {
    const by = caller();
    const { changes, store } = committing();
    for (const error of [new VaultError('validation_failed', { public: 'no' }), new Error('bug')]) {
      const failing = async (opens: boolean) => {
        if (opens) openOne(by, 'opened');
        throw error;
      };
      const reachOut: Decide = async () => ({ reachOut: () => failing(true) });
      const settling: Decide = async () => ({ reachOut: async () => () => failing(true) });
      for (const decide of [() => failing(true), reachOut, settling, () => failing(false)]) {
        await assert.rejects(perform(performingFor(by, store), decide), error);
      }
    }
    const written = changes.map(({ entries }) =>
      entries.map(({ entity_id, operation, result }) => [entity_id, operation, result]),
    );
    const entry = [['opened', 'update', 'failed']];
    assert.deepEqual(written, Array(6).fill(entry));
  });

  test('has one where what was decided after it meets a conflict, however the request ends', async () => {
    const by = caller();
    const { changes, store } = committing();
    let conflicts = 0;
    const meeting = { ...store } as Store;
    meeting.commit = async (change) => {
      if (!change.entries.some(({ result }) => result === 'success')) return store.commit(change);
      if (conflicts > 0) {
        conflicts -= 1;
        return { conflict: 'tokens.version' };
      }
      return store.commit(change);
    };
    const performing = performingFor(by, meeting);
    const refusal = new VaultError('forbidden', { public: 'no' });
    const success = async (opened: string) => {
      openOne(by, opened);
      return {
        change: { entries: [readOf(by, opened)] as const },
        reply: { status: 200 as const },
      };
    };
    /** How a request ends whose first decision met a conflict. */
    const endings: Decide[] = [
      async (conflict) =>
        conflict ? { change: { entries: [readOf(by, 'other')] }, refusal } : success('opened'),
      async (conflict) => {
        if (conflict) throw refusal;
        return success('opened');
      },
      (conflict) => success(conflict ? 'other' : 'opened'),
    ];
    for (const decide of endings) {
      const again: Decide = async () => ({
        reachOut: async () => decide as never,
      });
      for (const one of [decide, again]) {
        changes.length = 0;
        conflicts = 1;
        await perform(performing, one).catch((error) => assert.equal(error, refusal));
        const failed = changes.flatMap(({ entries }) =>
          entries.filter(({ result }) => result === 'failed').map(({ entity_id }) => entity_id),
        );
        assert.deepEqual(failed, ['opened']);
      }
    }
    changes.length = 0;
    conflicts = Number.POSITIVE_INFINITY;
    await assert.rejects(
      perform(performing, () => success('opened')),
      { code: 'conflict' },
    );
    const written = changes.map(({ entries }) => entries.map((one) => [one.entity_id, one.result]));
    assert.deepEqual(written, [[['opened', 'failed']]]);
  });

  test('is accounted for also where it is opened for what is stored of the reply', async () => {
    const by = caller();
    const { changes, store } = committing();
    const deciding =
      (entry: string): Decide =>
      async () => ({
        change: { entries: [readOf(by, entry)] },
        reply: { status: 200, body: {} },
      });
    const slot = {
      rowOf: () => {
        openOne(by, 'opened');
        return undefined;
      },
      stored: async () => undefined,
    };
    const performing = performingFor(by, store);
    await assert.rejects(perform(performing, deciding('other'), slot), { name: 'AssertionError' });
    assert.deepEqual(changes, []);
    await perform(performing, deciding('opened'), slot);
    assert.equal(changes.length, 1);
  });

  test('is made in one place, and ciphertext becomes a value in few', () => {
    // What tenants run there decrypts what they bring themselves.
    const sources = committedPaths().filter((path) =>
      /^src\/(?!reactors\/sandbox\/).*\.ts$/.test(path),
    );
    const naming = (pattern: RegExp) =>
      sources.filter((path) => pattern.test(readSource(path).text)).toSorted();
    assert.deepEqual(naming(/\bopeningGrant\(/), [
      'src/keys/envelope.ts',
      'src/rules/opened.ts',
      'src/rules/openings.ts',
    ]);
    const made = /\bas (?:unknown as )?Opening(?:Grant|Keys)\b/;
    assert.deepEqual(naming(made), ['src/keys/envelope.ts']);
    assert.deepEqual(naming(/\.asGrant\b/), ['src/rules/openings.ts']);
    assert.deepEqual(naming(/\bcreateDecipheriv\b/), ['src/keys/aead.ts']);
    const importing = (target: string) =>
      sources.filter((path) => importsOf(readSource(path)).some((one) => one.target === target));
    // The keyring and the root key's file only make keys, and a root key unwraps nothing else. A placeholder holds the
    // id of a token, and no value.
    assert.deepEqual(importing('src/keys/aead.ts'), [
      'src/keys/envelope.ts',
      'src/keys/keyring.ts',
      'src/keys/placeholder.ts',
      'src/keys/root/file.ts',
      'src/keys/root/local-key.ts',
      'src/keys/root/root-key.ts',
    ]);
    assert.deepEqual(naming(/import (?!type)[^;]*\b(?:open|decrypt|\* as \w+)\b[^;]*aead\.ts'/), [
      'src/keys/envelope.ts',
      'src/keys/placeholder.ts',
      'src/keys/root/local-key.ts',
    ]);
    // The second only verifies what somebody else signed.
    assert.deepEqual(importing('jose'), ['src/keys/client-key.ts', 'src/keys/logout-token.ts']);
    const asymmetric =
      /\b(?:compactDecrypt|(?:private|public)Decrypt|diffieHellman|decapsulate|jwtDecrypt|webcrypto|subtle)\b/;
    // The authority of programs only signs.
    assert.deepEqual(naming(asymmetric), [
      'src/keys/client-key.ts',
      'src/keys/egress-authority.ts',
    ]);
  });

  test('is opened for the vault itself only where its job is done', () => {
    const jobs = new Set<string>();
    for (const path of committedPaths().filter((one) => /^src\/.*\.ts$/.test(one))) {
      if (path === 'src/rules/openings.ts') continue;
      const { text } = readSource(path);
      const names = [...text.matchAll(/\b(?:openerOf|grantOf)\(\s*(?:'([^']*)'|([^)]*))/g)];
      for (const [, job, other] of names) jobs.add(`${job ?? `not a name: ${other}`}: ${path}`);
      // What the vault has sealed for itself is opened for the job that its caller names.
      for (const [, job] of text.matchAll(/\bopen\(\{ job: '([^']*)'/g))
        jobs.add(`${job}: ${path}`);
      // Under another name they would not be found here.
      assert.doesNotMatch(text, /\b(?:openerOf|grantOf)\b(?!\()(?! ?[,}])/, path);
    }
    assert.deepEqual([...jobs].toSorted(), [
      'continue sign-ins: src/access/people/flows.ts',
      'deliver events: src/webhooks/deliveries/disable.ts',
      'deliver events: src/webhooks/deliveries/webhooks-of.ts',
      'deliver events: src/webhooks/events/envelope.ts',
      'describe proxies: src/webhooks/events/data.ts',
      'examine proxies: src/cli/doctor/proxies.ts',
      'examine proxies: src/proxies/problems.ts',
      'expire card codes: src/tokens/contents/sealed-row.ts',
      'expire card codes: src/tokens/intents/row.ts',
      'expire responses: src/http/idempotency/stored-reply.ts',
      'load encryption keys: src/access/client-keys/open-encrypted.ts',
      'load keyrings: src/access/keyrings/vault-keys.ts',
      'load proxies: src/proxies/calls/holder.ts',
      'load proxies: src/proxies/find.ts',
      'load reactors: src/reactors/calls/called-reactor.ts',
      'load reactors: src/reactors/calls/react.ts',
      'match approvals: src/proxies/approvals/waiting.ts',
      'match results: src/reactors/calls/read-result.ts',
      'match webhooks: src/webhooks/subscriptions.ts',
      'not a name: job: src/access/keyrings/vault-keys.ts',
      'rotate keys: src/access/keyrings/rotate-root.ts',
      'rotate keys: src/access/keyrings/rotation-lock.ts',
      'rotate tenant keys: src/runtime/jobs/reseal-rows.ts',
      'run reactor calls: src/reactors/calls/take-run.ts',
      'sign deliveries: src/access/keyrings/signing-pairs.ts',
    ]);
  });
});
