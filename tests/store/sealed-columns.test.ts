/** A new sealed column cannot be forgotten by rotations: the table of them is compared with the schema. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sealedColumns } from '../../src/store/queries/key-versions.ts';
import { shapes, type Table } from '../../src/store/tables.ts';

/** Columns of bytes that the root key protects, and no key of a tenant. */
const underRootKey = ['tenants.keyring', 'vault_keys.private_key'];

/** They say in which blocks of the log entries are, which the log itself says without a key. */
const positions = ['log_index.postings'];

test('every column of bytes is sealed by a key that a rotation knows', () => {
  const bytes = (Object.keys(shapes) as Table[]).flatMap((table) => {
    const { columns, kinds } = shapes[table];
    return columns.filter((_, at) => kinds[at] === 'bytes').map((column) => `${table}.${column}`);
  });
  const known = Object.entries(sealedColumns).map(([table, { column }]) => `${table}.${column}`);
  assert.deepEqual(bytes.sort(), [...known, ...underRootKey, ...positions].sort());
});
