/** Permissions: the documented table, cell by cell. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parsePermission, permissionAllowed, permissions } from '../../src/rules/permissions.ts';

const documented = {
  'public, private': ['token:create', 'token:update', 'token-intent:create'],
  private: [
    'token:read',
    'token:search',
    'token:delete',
    'token:use',
    'proxy:invoke',
    'reactor:invoke',
    'token-intent:read',
    'token-intent:delete',
  ],
  management: [
    'tenant:read',
    'tenant:update',
    'tenant:delete',
    'log:read',
    'report:read',
    'application:read',
    'application:create',
    'application:update',
    'approval:decide',
    'approval:read',
    'application:delete',
    'session:read',
    'session:delete',
    'person:read',
    'person:create',
    'person:update',
    'person:delete',
    'proxy:read',
    'proxy:create',
    'proxy:update',
    'proxy:delete',
    'reactor:read',
    'reactor:create',
    'reactor:update',
    'reactor:delete',
    'keys:read',
    'keys:create',
    'keys:delete',
    'keys:rotate',
    'webhook:read',
    'webhook:create',
    'webhook:update',
    'webhook:delete',
  ],
};
const names = Object.values(documented).flat();

suite('permissions', () => {
  test('has the documented permissions and no other', () => {
    assert.deepEqual(Object.keys(permissions).sort(), names.toSorted());
  });

  for (const [kinds, held] of Object.entries(documented)) {
    test(`gives to ${kinds} what is documented for it, and to nobody else`, () => {
      for (const name of held) {
        const permission = parsePermission(name);
        assert(permission !== undefined, name);
        for (const kind of ['public', 'private', 'management'] as const) {
          const allowed = kinds.split(', ').includes(kind);
          assert.equal(permissionAllowed(permission, kind), allowed, `${name} ${kind}`);
        }
      }
    });
  }

  test('takes the permissions of webhooks in both spellings, and gives one', () => {
    for (const verb of ['read', 'create', 'update', 'delete']) {
      assert.equal(parsePermission(`webhooks:${verb}`), `webhook:${verb}`);
    }
    assert.equal(parsePermission('webhooks:'), undefined);
    assert.equal(parsePermission('webhooks:invoke'), undefined);
    assert.equal(parsePermission('proxys:read'), undefined);
  });

  test('gives a session what a private application may hold', () => {
    for (const [permission, { kinds }] of Object.entries(permissions)) {
      const name = parsePermission(permission);
      assert(name !== undefined);
      assert.equal(permissionAllowed(name, 'session'), kinds.includes('private'), permission);
    }
  });

  test('implies a mask for what reads and writes, reveal for what uses, nothing for delete', () => {
    const implied = Object.entries(permissions).filter(([, row]) => row.token);
    assert.deepEqual(Object.fromEntries(implied.map(([n, row]) => [n, row.impliedTransform])), {
      'token:create': 'mask',
      'token:update': 'mask',
      'token:read': 'mask',
      'token:search': 'mask',
      'token:delete': undefined,
      'token:use': 'reveal',
      'proxy:invoke': 'reveal',
      'reactor:invoke': 'reveal',
    });
  });

  test('asks people to prove that they are present for everything that changes a tenant', () => {
    for (const [name, { kinds, needsPresence }] of Object.entries(permissions)) {
      const isReading = name.endsWith(':read');
      assert.equal(needsPresence ?? false, kinds.includes('management') && !isReading, name);
    }
  });

  test('fits the limits of the wire: a description of 1 to 250, a name of 2 to 4 words', () => {
    for (const [name, { description }] of Object.entries(permissions)) {
      assert.match(name, /^[a-z-]+(:[a-z-]+){1,3}$/);
      assert(description.length > 0 && description.length <= 250, name);
    }
  });
});

suite('parsePermission', () => {
  test('is undefined for any other text', () => {
    const texts = ['', 'token', 'token:*', 'Token:read', 'token:read ', 'toString', '__proto__'];
    for (const text of texts) assert.equal(parsePermission(text), undefined, text);
  });
});
