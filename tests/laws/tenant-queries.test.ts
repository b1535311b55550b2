/** The second wall between tenants: every query names the tenant, and every key begins with it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shapes } from '../../src/store/tables.ts';
import {
  committedPaths,
  lineAt,
  readSource,
  type SourceFile,
  sourceFile,
} from '../support/source.ts';

/** Files that ask beyond one tenant, with how many queries and why; no request is answered with them. */
const beyondOneTenant: Readonly<Record<string, number>> = {
  // Whether there is any tenant, or a production tenant, the first one, the lists of tenants for the operator, the
  // one that the operator named, those in a copy of the database that is verified, and those whose keys are aged.
  'src/store/queries/tenants.ts': 8,
  // Whose events and deliveries wait, for the thread that delivers them and for metrics, and whether there is any
  // webhook at all.
  'src/store/event-queries/deliveries.ts': 5,
  // What is due of any tenant, for jobs, and the ids behind the numbers by which rows name their tenants.
  'src/store/queries/due.ts': 3,
  // The keys of the vault itself, all of them or the few that protect the others, and the numbers of the pairs that
  // sign webhooks; one by its name.
  'src/store/queries/vault-keys.ts': 4,
  // Rotations that are under way, for the operator.
  'src/store/queries/key-rotations.ts': 1,
  // Whose sessions a copy of the vault leaves out.
  'src/store/queries/sessions.ts': 1,
  // The same of sessions of the console and of links to it. Whose people sign in with the identity provider: the
  // operator's rules and the provider's notices are about all tenants.
  'src/store/queries/people.ts': 3,
  // The conditions of a list begin with the tenant; see token-conditions.
  'src/store/queries/token-sources.ts': 1,
};

/** A table by its name, or by a variable; not a query within a query, which is looked at by itself. */
const begin = /\b(?:selectFrom|innerJoin|leftJoin)\s*\(\s*(?:'(\w+)|table\b)/g;

/** Where a query begins, up to where it ends: the brackets around it close, or its statement does. */
function queriesOf({ path, text, code }: SourceFile): { where: string; text: string }[] {
  const begun = [...text.matchAll(begin)]
    .filter(({ index }) => code[index] !== ' ')
    .filter(([, table]) => table === undefined || table in shapes);
  return begun.map(({ index }) => {
    let depth = 0;
    let end = index;
    while (end < code.length && depth >= 0 && !(depth === 0 && code[end] === ';')) {
      if ('([{'.includes(code[end] ?? '')) depth += 1;
      if (')]}'.includes(code[end] ?? '')) depth -= 1;
      end += 1;
    }
    return { where: `${path}:${lineAt(text, index)}`, text: text.slice(index, end) };
  });
}

const namesTenant = /\.where\(\s*'(?:\w+\.)?tenant_id',\s*'=',|\.on(?:Ref)?\(\s*'\w+\.tenant_id'/;

function withoutTenant(file: SourceFile): string[] {
  return queriesOf(file)
    .filter((query) => !namesTenant.test(query.text))
    .map(({ where }) => where);
}

test('every query names the tenant', () => {
  const files = committedPaths().filter((path) => /^src\/.*\.ts$/.test(path));
  const found = files.map(readSource);
  const queries = found.flatMap(queriesOf);
  assert.ok(queries.length > 15, 'the queries are found');
  const stray = found.flatMap((file) => withoutTenant(file));
  const expected = Object.keys(beyondOneTenant);
  const unexplained = stray.filter((where) => !expected.includes(where.split(':')[0] ?? ''));
  assert.deepEqual(unexplained, []);
  for (const [path, count] of Object.entries(beyondOneTenant)) {
    assert.equal(stray.filter((where) => where.startsWith(`${path}:`)).length, count, path);
  }
});

test('every query names the tenant: the rule can fail', () => {
  const stray = (text: string) => withoutTenant(sourceFile('src/vault/a.ts', text)).length;
  const tenant = ".where('tenant_id', '=', tenant)";
  assert.equal(stray("store.select((db) => db.selectFrom('tokens').selectAll());"), 1);
  assert.equal(stray(`store.select((db) => db.selectFrom('tokens').selectAll()${tenant});`), 0);
  assert.equal(
    stray(`f(db.selectFrom('tokens').selectAll()); g(db.selectFrom('logs')${tenant});`),
    1,
  );
  assert.equal(stray("db.selectFrom('logs').where('tenant_id', 'is not', null);"), 1);
  assert.equal(stray("// db.selectFrom('logs')"), 0);
  assert.equal(stray('db.selectFrom(table).selectAll();'), 1);
});

test('every key begins with the tenant, except key hashes, proxy addresses, hosts and the vault’s own keys', () => {
  const others = Object.values(shapes).filter(({ key }) => key[0] !== 'tenant_id');
  assert.deepEqual(
    others.map(({ name }) => name),
    ['api_keys', 'proxy_addresses', 'tenant_hosts', 'vault_keys'],
  );
  for (const { name, columns } of Object.values(shapes)) {
    assert.equal(columns.includes('tenant_id'), name !== 'vault_keys', name);
  }
  const users = (table: string) =>
    committedPaths()
      .filter((path) => /^src\/.*\.ts$/.test(path))
      .filter((path) => new RegExp(`\\.get\\(\\s*'${table}'`).test(readSource(path).text));
  assert.deepEqual(users('api_keys'), [
    'src/access/authenticate.ts',
    // Which origins may show the fields of a public key, whoever asks.
    'src/access/origins-by-key.ts',
    // The operator's own.
    'src/access/tenants/bootstrap.ts',
    'src/cli/key-find.ts',
  ]);
  assert.deepEqual(users('proxy_addresses'), [
    'src/proxies/find.ts',
    'src/proxies/resource.ts',
    'src/proxies/tenant-hosts.ts',
  ]);
  assert.deepEqual(users('tenant_hosts'), ['src/proxies/tenant-hosts.ts']);
});
