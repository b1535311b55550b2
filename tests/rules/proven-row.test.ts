/** Nothing behind the border reads a row that the vault did not write: the compiler and the sources say so. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseInstant } from '../../src/base/clock.ts';
import { type ApplicationId, newUuid, type TenantId } from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { createKeyring } from '../../src/keys/keyring.ts';
import {
  ifProven,
  isProven,
  proven,
  provenRows,
  requireProven,
} from '../../src/rules/proven-row.ts';
import { createQuarantine } from '../../src/rules/quarantine.ts';
import type { ListedToken } from '../../src/store/queries/token-pages.ts';
import { explainedTables, type ProvenTable } from '../../src/store/row-states.ts';
import type { Query, Store } from '../../src/store/store.ts';
import { type Row, shapes } from '../../src/store/tables.ts';
import { openData } from '../../src/tokens/contents/sealed-row.ts';
import { viewUnread } from '../../src/tokens/contents/view.ts';
import { asStored } from '../support/rows.ts';
import { committedPaths, readSource } from '../support/source.ts';

const random = pooledRandom();
const keys = { keyring: createKeyring(random) };
const at = parseInstant(0);

function application(name: string): Row<'applications'> {
  return proven(keys, 'applications', {
    tenant_id: newUuid<TenantId>(random),
    application_id: newUuid<ApplicationId>(random),
    version: 1,
    name,
    type: 'private',
    permissions: '[]',
    rules: '[]',
    key_ids: '[]',
    origins: null,
    egress_budget: null,
    egress: null,
    created_by: null,
    created_at: at,
    modified_by: null,
    modified_at: null,
  });
}

suite('a row that is yet to be proven', () => {
  test('cannot be read, decided by, or written again: that does not compile', () => {
    const compiled = async (store: Store, query: Query<Row<'applications'>>) => {
      const row = await store.get('applications', {} as never);
      if (row === undefined) return;
      // @ts-expect-error what it permits decides
      row.permissions;
      // @ts-expect-error a function behind the border takes a row that is proven
      const passed: Row<'applications'> = row;
      // @ts-expect-error writing it again would make it valid
      proven(keys, 'applications', row);
      // @ts-expect-error so would a copy with another version
      proven(keys, 'applications', { ...row, version: 2 });
      // @ts-expect-error the store returns no whole row of such a table
      await store.select(query);
      const part = (() => undefined) as unknown as Query<{ readonly permissions: string }>;
      // @ts-expect-error nor the columns that decide
      await store.scan(part);
      // Its name is enough to find its keys, to speak of it in the log, and to remove it.
      await store.commit({ remove: { applications: [row] }, entries: [{} as never] });
      return [passed, requireProven(keys, 'applications', row).permissions];
    };
    assert.equal(typeof compiled, 'function');
  });

  test('is a row with sealed data, too: that it is shown or written before it opens does not compile', () => {
    const compiled = async (store: Store, whole: Query<Row<'tokens'>>) => {
      const token = await store.get('tokens', {} as never);
      const intent = await store.get('token_intents', {} as never);
      const run = await store.get('reactor_runs', {} as never);
      if (!token || !intent || !run) return;
      // @ts-expect-error what a response shows of it
      token.metadata;
      // @ts-expect-error what masks its data
      token.mask;
      // @ts-expect-error a function that shows it takes one that has opened
      viewUnread(token);
      // @ts-expect-error writing it again would make it valid
      await store.commit({ replace: { tokens: [{ ...token, version: 2 }] }, entries: [] as never });
      // @ts-expect-error neither is another table's row proven
      const others: [Row<'token_intents'>, Row<'reactor_runs'>] = [intent, run];
      // @ts-expect-error the store returns no whole row of such a table
      await store.select(whole);
      const page = (() => undefined) as unknown as Query<ListedToken>;
      const [listed] = await store.select(page);
      // @ts-expect-error of a row whose data was not read nothing can be opened
      openData({} as never, listed, at);
      // What decides who may open it is compared before, and opening it fails where that was altered.
      return [others, token.container, openData({} as never, token, at).row.metadata];
    };
    assert.equal(typeof compiled, 'function');
  });

  test('is never made of text that a database gives back as another one, in whichever table and column', () => {
    for (const [table, { by }] of Object.entries(explainedTables)) {
      if (by !== 'proof') continue;
      const columns = shapes[table as ProvenTable].columns.filter((column) => column !== 'proof');
      for (const column of columns) {
        for (const text of ['a\ud800b', '\udc00', 'a\0b']) {
          const row = Object.fromEntries(columns.map((one) => [one, one === column ? text : '']));
          assert.throws(() => proven(keys, table as 'applications', row as never), {
            code: 'validation_failed',
            errors: { [column]: ['must not contain U+0000 or half of a surrogate pair'] },
          });
        }
      }
    }
    assert.equal(application('\u{10ffff}').name, '\u{10ffff}');
  });

  test('is the row itself where the vault wrote it, and an error that names it where not', () => {
    const row = application('one');
    assert.equal(requireProven(keys, 'applications', asStored(row)), row);
    const altered = asStored<'applications'>({ ...row, rules: '[{}]' });
    assert.equal(isProven(keys, 'applications', altered), false);
    assert.throws(() => requireProven(keys, 'applications', altered), {
      code: 'integrity',
      altered: { entity: 'application', id: row.application_id },
    });
    const foreign = { keyring: createKeyring(random) };
    assert.equal(isProven(foreign, 'applications', asStored(row)), false);
    assert.equal(isProven(keys, 'applications', asStored(row)), true);
  });

  test('is passed over without an alert only by those on this list', () => {
    const silent = committedPaths()
      .filter((path) => /^src\/.*\.ts$/.test(path) && !path.startsWith('src/rules/'))
      .filter((path) => /isProven[^;]*proven-row\.ts|silentQuarantine/.test(readSource(path).text));
    assert.deepEqual(silent.toSorted(), [
      'src/access/keyrings/rotate-root.ts',
      'src/access/tenants/tenants.ts',
      'src/audit/state-walk.ts',
      'src/cli/copy/tenant-keys.ts',
      'src/cli/doctor/proxies.ts',
      'src/runtime/open-vault.ts',
    ]);
  });

  test('is set aside among others, which are read, and is reported once', () => {
    const [one, other] = [application('one'), application('other')];
    const reported: unknown[] = [];
    const quarantine = createQuarantine((damage) => reported.push(damage.altered));
    const found = [one, { ...other, name: 'altered' }].map((row) => asStored<'applications'>(row));
    const tenant = { ...keys, quarantine };
    const { rows, altered } = provenRows(tenant, 'applications', found);
    assert.deepEqual(rows, [one]);
    assert.deepEqual(altered, [{ entity: 'application', id: other.application_id }]);
    assert.deepEqual(reported, altered);
    assert.deepEqual(
      found.map((row) => ifProven(tenant, 'applications', row)),
      [one, undefined],
    );
    assert.deepEqual(reported, [...altered, ...altered]);
  });
});

/** What may look at a row that is not proven, and why. */
const lookers: Readonly<Record<string, string>> = {
  'src/rules/proven-row.ts': 'proves it',
  'src/rules/bound-row.ts': 'opens it, which proves it',
  'src/tokens/contents/sealed-row.ts': 'whether it has a mask, and which key has sealed it',
  'src/tokens/reseal.ts': 'of which keys its digests are, before it opens it',
  'src/rules/offset-page.ts': 'seals a cursor of the column by which the database has ordered',
  'src/access/tenants/tenants.ts': 'opens the keyring in it, which proves it, and deletion marks',
  'src/access/keyrings/open-vault-keys.ts': 'opens what the root key protects in it',
  'src/access/keyrings/rotate-root.ts': 'finds which key protects it, before it proves it',
  'src/cli/copy/tenant-keys.ts':
    'opens the keyring of a tenant that moves, and compares its row with the log',
  'src/cli/doctor/root-key.ts': 'opens what the root key has sealed in it',
  'src/cli/logs/state.ts': 'compares it with the log',
  'src/runtime/jobs/renew-aged-keys.ts':
    'whether the tenant is deleted, and its keyring, which the root key proves; then the whole row',
  'src/runtime/metrics-address.ts': 'counts the tokens of tenants that it does not call deleted',
  'src/http/handle-request.ts':
    'skips a check, which would refuse, where it says that it is deleted',
};

test('only listed files look at a row that is not proven', () => {
  const found = committedPaths().filter(
    (path) =>
      path.startsWith('src/') &&
      path.endsWith('.ts') &&
      path !== 'src/store/stored-row.ts' &&
      /\bunverifiedColumns\b/.test(readSource(path).code),
  );
  assert.deepEqual(found.toSorted(), Object.keys(lookers).toSorted());
});
