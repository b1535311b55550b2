/** Handles: which names an operator may give, and whom a name means. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseHandle, tenantMeant } from '../../src/access/tenants/handle.ts';
import { VaultError } from '../../src/base/errors.ts';
import type { TenantId } from '../../src/base/ids.ts';

const [one, two] = [
  '11111111-1111-4111-8111-11111111111a',
  '22222222-2222-4222-8222-222222222222',
] as [TenantId, TenantId];

test('a handle is a line of text that reads like nothing else the operator names', () => {
  for (const text of ['a', 'Acme & Söhne', 'x'.repeat(200), `${one}.`, 'deleted']) {
    assert.equal(parseHandle(text), text);
  }
  const wrong = [
    one,
    one.toUpperCase(),
    `deleted ${one}`,
    ' a',
    'a ',
    '',
    'a\nb',
    'a\u202eb',
    'x'.repeat(201),
  ];
  for (const text of wrong) {
    assert.throws(
      () => parseHandle(text),
      (error) => error instanceof VaultError && Object.keys(error.errors ?? {})[0] === 'name',
      JSON.stringify(text),
    );
  }
});

test('a text means the tenant of that handle, exactly as written, or of that id in either case', () => {
  const rows = [
    { tenant_id: one, name: 'one' },
    { tenant_id: two, name: 'Two' },
  ];
  assert.equal(tenantMeant(rows, 'one'), one);
  assert.equal(tenantMeant(rows, 'Two'), two);
  assert.equal(tenantMeant(rows, one.toUpperCase()), one);
  for (const text of ['two', 'ONE', ' one', '']) assert.equal(tenantMeant(rows, text), undefined);
  const removed = '33333333-3333-4333-8333-333333333333';
  assert.equal(tenantMeant(rows, removed), removed, 'the log of a tenant outlives its row');
});

test('a text that is the id of one tenant and the handle of another means neither', () => {
  assert.equal(tenantMeant([{ tenant_id: one, name: two }], two), 'ambiguous');
  assert.equal(tenantMeant([{ tenant_id: one, name: one }], one), one);
});
