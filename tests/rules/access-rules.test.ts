/** Reading access rules: what is refused, by the attribute that is wrong. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { VaultError } from '../../src/base/errors.ts';
import { parsePermissions, parseRules, type WireRule } from '../../src/rules/access-rules.ts';
import type { HolderKind } from '../../src/rules/permissions.ts';
import type { Condition } from '../../src/rules/policy.ts';

suite('parseRules', () => {
  const good: WireRule = {
    priority: 1,
    container: '/pci/',
    permissions: ['token:create'],
    transform: 'mask',
  };
  const id: Condition = { attribute: 'id', operator: 'equals', value: 'abc' };
  const conditional: WireRule = { ...good, container: null, conditions: [id] };

  function errorsOf(rules: WireRule[], kind: HolderKind) {
    try {
      parseRules(rules, { kind });
    } catch (error) {
      assert(error instanceof VaultError && error.code === 'validation_failed');
      return Object.keys(error.errors ?? {});
    }
    return [];
  }

  test('keeps what was sent, the container in lower case', () => {
    const sent = { ...good, container: '/PCI/', description: 'cards', conditions: null };
    assert.deepEqual(parseRules([sent], { kind: 'public' }), [
      {
        description: 'cards',
        priority: 1,
        container: '/pci/',
        permissions: ['token:create'],
        transform: 'mask',
      },
    ]);
  });

  const sessionPermissions = ['token:create', 'token:read', 'token:delete', 'token:use'];
  test('lets a session have conditions or a container, and permissions a public key may not', () => {
    const rules = [
      { ...conditional, permissions: sessionPermissions },
      { ...good, priority: 2, permissions: sessionPermissions },
    ];
    assert.deepEqual(errorsOf(rules, 'session'), []);
  });

  const refused: Record<
    string,
    { rules: WireRule[]; kind?: 'public' | 'session' | 'management'; paths: string[] }
  > = {
    'a priority of 0': { rules: [{ ...good, priority: 0 }], paths: ['rules[0].priority'] },
    'a priority that is no whole number': {
      rules: [{ ...good, priority: 1.5 }],
      paths: ['rules[0].priority'],
    },
    'a priority that is used twice': { rules: [good, good], paths: ['rules[1].priority'] },
    'a path that is no container': {
      rules: ['pci', '/pci', '/pci/*/', '//', '/a.b/', '', '/ /'].map((container, index) => ({
        ...good,
        container,
        priority: index + 1,
      })),
      paths: [0, 1, 2, 3, 4, 5, 6].map((index) => `rules[${index}].container`),
    },
    'neither container nor conditions': {
      rules: [{ ...good, container: null }],
      kind: 'session',
      paths: ['rules[0].container'],
    },
    'container and conditions together': {
      rules: [{ ...conditional, container: '/' }],
      kind: 'session',
      paths: ['rules[0].conditions'],
    },
    'conditions of an application': { rules: [conditional], paths: ['rules[0].conditions'] },
    'an empty list of conditions': {
      rules: [{ ...conditional, conditions: [] }],
      kind: 'session',
      paths: ['rules[0].conditions'],
    },
    'a condition that no token could meet': {
      rules: [
        {
          ...conditional,
          conditions: [
            { ...id, value: '' },
            { ...id, value: 'x'.repeat(401) },
            { attribute: 'container', operator: 'equals', value: '/pci' },
            { attribute: 'container', operator: 'starts_with', value: 'pci' },
            { attribute: 'container', operator: 'starts_with', value: '/p\u212a' },
            { attribute: 'container', operator: 'starts_with', value: `/${'x'.repeat(399)}` },
            { attribute: 'container', operator: 'starts_with', value: '/pci//x' },
            { attribute: 'container', operator: 'starts_with', value: '/x'.repeat(33) },
          ],
        },
      ],
      kind: 'session',
      paths: [0, 1, 2, 3, 4, 5, 6, 7].map((index) => `rules[0].conditions[${index}].value`),
    },
    'an unknown permission, and one the kind may not hold': {
      rules: [{ ...good, permissions: ['token:create', 'token:steal', 'token:read'] }],
      paths: ['rules[0].permissions[1]', 'rules[0].permissions[2]'],
    },
    'a permission that is not about tokens in containers': {
      rules: [{ ...good, permissions: ['token-intent:create'] }],
      paths: ['rules[0].permissions[0]'],
    },
    'an empty list of permissions': {
      rules: [{ ...good, permissions: [] }],
      paths: ['rules[0].permissions'],
    },
    'any rule of a management application': {
      rules: [good],
      kind: 'management',
      paths: ['rules[0].permissions[0]'],
    },
    'everything that is wrong at once': {
      rules: [good, { ...good, priority: -1, container: 'x', permissions: ['log:read'] }],
      paths: ['rules[1].priority', 'rules[1].container', 'rules[1].permissions[0]'],
    },
  };
  for (const [what, { rules, kind = 'public', paths }] of Object.entries(refused)) {
    test(`refuses ${what}`, () => {
      assert.deepEqual(errorsOf(rules, kind), paths);
    });
  }

  test('names the permissions that can be granted, and the one that was probably meant', () => {
    const messageOf = (permission: string) => {
      try {
        parsePermissions([permission], 'public');
      } catch (error) {
        return (error as VaultError).errors?.['permissions[0]']?.[0];
      }
      return undefined;
    };
    const list = 'must be one of: token:create, token:update, token-intent:create';
    assert.equal(messageOf('tokens:craete'), `did you mean token:create? It ${list}`);
    assert.equal(messageOf('token:read'), list, 'a public application may not hold it');
    assert.equal(messageOf('x'.repeat(100_000)), list);
  });

  test('takes 100 rules of 50 permissions and 10 conditions, and not one more', () => {
    const rules = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ ...good, priority: index + 1 }));
    const permissions = (count: number) => Array<string>(count).fill('token:create');
    const conditions = (count: number) => Array<Condition>(count).fill(id);
    assert.deepEqual(errorsOf(rules(100), 'public'), []);
    assert.deepEqual(errorsOf(rules(101), 'public'), ['rules']);
    assert.deepEqual(errorsOf([{ ...good, permissions: permissions(50) }], 'public'), []);
    assert.deepEqual(errorsOf([{ ...good, permissions: permissions(51) }], 'public'), [
      'rules[0].permissions',
    ]);
    assert.deepEqual(errorsOf([{ ...conditional, conditions: conditions(10) }], 'session'), []);
    assert.deepEqual(errorsOf([{ ...conditional, conditions: conditions(11) }], 'session'), [
      'rules[0].conditions',
    ]);
  });
});

suite('parsePermissions', () => {
  const errorPaths = (texts: string[], kind: HolderKind) => {
    try {
      parsePermissions(texts, kind);
    } catch (error) {
      assert(error instanceof VaultError && error.code === 'validation_failed');
      return Object.keys(error.errors ?? {});
    }
    return [];
  };

  test('reads what the kind may hold, about tokens or not', () => {
    const held = parsePermissions(['token:create', 'token-intent:create'], 'public');
    assert.deepEqual(held, ['token:create', 'token-intent:create']);
    assert.deepEqual(parsePermissions([], 'private'), []);
  });

  test('names every permission that is unknown or not for the kind', () => {
    const texts = ['token:create', 'token:read', 'nothing', 'log:read'];
    assert.deepEqual(errorPaths(texts, 'public'), [
      'permissions[1]',
      'permissions[2]',
      'permissions[3]',
    ]);
  });

  test('takes 50, and not one more', () => {
    assert.deepEqual(errorPaths(Array<string>(50).fill('token:read'), 'private'), []);
    assert.deepEqual(errorPaths(Array<string>(51).fill('token:read'), 'private'), ['permissions']);
  });
});
