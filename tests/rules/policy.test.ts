/** Access: the decision equals a naive model of the documented rules, and grants never grow. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { parseContainer } from '../../src/base/container.ts';
import { parseTokenId } from '../../src/base/ids.ts';
import { parseRules, type WireRule } from '../../src/rules/access-rules.ts';
import { type Permission, parsePermission } from '../../src/rules/permissions.ts';
import * as access from '../../src/rules/policy.ts';
import {
  impliedTransforms,
  type ModelToken,
  type PolicyWords,
  transformOf,
} from '../support/access-model.ts';

// ---- Random policies and tokens, from few names so that they meet often. ----

const tokenPermissions = Object.keys(impliedTransforms);
const path = fc
  .array(fc.constantFrom('pci', 'PCI', 'p', 'pci-1', 'high', 'High', 'low', 'a_b'), {
    maxLength: 3,
  })
  .map((names) => `/${names.map((name) => `${name}/`).join('')}`);
const id = fc.constantFrom('abc', 'ABC', 'abc.1', 'abc.12', 'abc:pci', 'x.y.z', 'abcd');
const token: fc.Arbitrary<ModelToken> = fc.record({
  id: fc.option(id, { nil: undefined }),
  container: path,
});

const condition: fc.Arbitrary<access.Condition> = fc.oneof(
  id.map((value) => ({ attribute: 'id', operator: 'equals', value }) as const),
  fc
    .tuple(id, fc.integer({ min: 1, max: 5 }))
    .map(
      ([text, length]) =>
        ({ attribute: 'id', operator: 'starts_with', value: text.slice(0, length) }) as const,
    ),
  path.map((value) => ({ attribute: 'container', operator: 'equals', value }) as const),
  fc.tuple(path, fc.integer({ min: 1, max: 9 })).map(
    ([text, length]) =>
      ({
        attribute: 'container',
        operator: 'starts_with',
        value: text.slice(0, length),
      }) as const,
  ),
);

const where = fc.oneof(
  path.map((container) => ({ container })),
  fc.array(condition, { minLength: 1, maxLength: 3 }).map((conditions) => ({ conditions })),
);
const rule = fc
  .record({
    priority: fc.integer({ min: 1, max: 30 }),
    where,
    permissions: fc.subarray(tokenPermissions, { minLength: 1 }),
    transform: fc.constantFrom<access.Transform>('redact', 'mask', 'reveal'),
  })
  .map(({ where, ...rest }): WireRule => ({ ...rest, ...where }));
const words: fc.Arbitrary<PolicyWords> = fc.record({
  permissions: fc.oneof(fc.constant([]), fc.subarray(tokenPermissions)),
  rules: fc.uniqueArray(rule, { maxLength: 6, selector: ({ priority }) => priority }),
});

/** Grants that stand a chance: some of the authorizer's own words, some narrowed, some invented. */
function grantedBy(authorizer: PolicyWords): fc.Arbitrary<PolicyWords> {
  const own = fc.subarray([...authorizer.rules]);
  const narrowed = fc
    .tuple(own, fc.array(path, { minLength: 6, maxLength: 6 }))
    .map(([rules, paths]) =>
      rules.map((one, index) =>
        one.container == null
          ? one
          : { ...one, container: one.container + (paths[index] ?? '/').slice(1) },
      ),
    );
  return fc.oneof(
    fc.record({
      permissions: fc.subarray([...authorizer.permissions]),
      rules: fc.oneof(own, narrowed),
    }),
    fc.record({
      permissions: fc.constant([]),
      rules: fc.uniqueArray(rule, { maxLength: 2, selector: ({ priority }) => priority }),
    }),
  );
}

function policyOf({ permissions, rules }: PolicyWords): access.Policy {
  return access.policyOf({
    permissions: permissions.map(permissionOf),
    rules: parseRules(rules, { kind: 'session' }),
  });
}

function permissionOf(text: string): Permission {
  const permission = parsePermission(text);
  assert(permission !== undefined);
  return permission;
}

function subjectOf({ id, container }: ModelToken): access.AccessSubject {
  const parsed = parseContainer(container);
  assert(parsed !== undefined);
  return { id: id === undefined ? undefined : parseTokenId(id), container: parsed };
}

function decided(
  given: PolicyWords,
  permission: string,
  about: ModelToken,
): access.Transform | undefined {
  return access.decide(policyOf(given), permissionOf(permission), subjectOf(about))?.transform;
}

suite('decide', () => {
  test('equals the model on random policies', () => {
    const seen = new Map<access.Transform | undefined, number>();
    fc.assert(
      fc.property(words, fc.array(token, { minLength: 1, maxLength: 5 }), (given, tokens) => {
        const policy = policyOf(given);
        for (const permission of tokenPermissions) {
          for (const about of tokens) {
            const grant = access.decide(policy, permissionOf(permission), subjectOf(about));
            const expected = transformOf(given, permission, about);
            assert.equal(grant?.transform, expected);
            assert.equal(grant?.permission, expected && permission);
            seen.set(expected, (seen.get(expected) ?? 0) + 1);
          }
        }
      }),
      { numRuns: 4000 },
    );
    for (const outcome of [undefined, 'redact', 'mask', 'reveal'] as const) {
      assert((seen.get(outcome) ?? 0) > 1000, `the random policies hardly ever gave ${outcome}`);
    }
  });

  const read = { permissions: ['token:read'] };
  const highMaskedRestRevealed: PolicyWords = {
    permissions: [],
    rules: [
      { ...read, priority: 1, container: '/pci/high/', transform: 'mask' },
      { ...read, priority: 2, container: '/pci/', transform: 'reveal' },
    ],
  };

  test('documented example: masked in /pci/high/, plaintext in /pci/low/', () => {
    const at = (container: string) =>
      decided(highMaskedRestRevealed, 'token:read', { id: 'abc', container });
    assert.equal(at('/pci/high/'), 'mask');
    assert.equal(at('/pci/high/visa/'), 'mask');
    assert.equal(at('/pci/low/'), 'reveal');
    assert.equal(at('/pci/'), 'reveal');
    assert.equal(at('/'), undefined);
    assert.equal(at('/bank/high/'), undefined);
    assert.equal(at('/pci-1/'), undefined);
  });

  test('documented example: a session that may reveal one token', () => {
    const conditions = [{ attribute: 'id', operator: 'equals', value: 'abc' }] as const;
    const given: PolicyWords = {
      permissions: [],
      rules: [{ ...read, priority: 1, conditions, transform: 'reveal' }],
    };
    assert.equal(decided(given, 'token:read', { id: 'abc', container: '/pci/' }), 'reveal');
    for (const id of ['ABC', 'abcd', undefined]) {
      assert.equal(decided(given, 'token:read', { id, container: '/pci/' }), undefined);
    }
    assert.equal(decided(given, 'token:update', { id: 'abc', container: '/pci/' }), undefined);
  });

  test('a rule without the permission does not end the search', () => {
    const given: PolicyWords = {
      permissions: [],
      rules: [
        { permissions: ['token:create'], priority: 1, container: '/', transform: 'redact' },
        { ...read, priority: 2, container: '/', transform: 'reveal' },
      ],
    };
    assert.equal(decided(given, 'token:read', { id: 'abc', container: '/' }), 'reveal');
  });

  test('an explicit rule wins over the plain permission, which is the lowest rule on /', () => {
    const given = { ...highMaskedRestRevealed, permissions: ['token:read', 'token:delete'] };
    assert.equal(decided(given, 'token:read', { id: 'abc', container: '/pci/' }), 'reveal');
    assert.equal(decided(given, 'token:read', { id: 'abc', container: '/bank/' }), 'mask');
    assert.equal(decided(given, 'token:delete', { id: 'abc', container: '/pci/' }), 'redact');
  });

  test('names the rule that decided, and none when the plain permission did', () => {
    const policy = policyOf({ ...highMaskedRestRevealed, permissions: ['token:read'] });
    const ruleAt = (container: string) =>
      access.decide(policy, 'token:read', subjectOf({ id: 'abc', container }))?.rule?.priority;
    assert.deepEqual(['/pci/high/', '/pci/', '/'].map(ruleAt), [1, 2, undefined]);
  });

  test('grants nothing to a caller who holds nothing, and nothing for a permission without containers', () => {
    const nothing = policyOf({ permissions: [], rules: [] });
    const plain = policyOf({ permissions: ['token-intent:read', 'log:read'], rules: [] });
    const subject = subjectOf({ id: 'abc', container: '/' });
    assert.equal(access.decide(nothing, 'token:read', subject), undefined);
    assert.equal(access.decide(plain, 'token-intent:read', subject), undefined);
    assert.equal(access.decide(plain, 'log:read', subject), undefined);
  });

  test('a condition on the beginning of a container compares whole segments', () => {
    const applies = (value: string, container: string) => {
      const conditions = [{ attribute: 'container', operator: 'starts_with', value }] as const;
      const rules = [{ ...read, priority: 1, conditions, transform: 'mask' as const }];
      const given: PolicyWords = { permissions: [], rules };
      return decided(given, 'token:read', { id: 'abc', container }) !== undefined;
    };
    for (const value of ['/pci', '/pci/', '/PCI']) {
      const inside = ['/pci/', '/pci/x/'].map((container) => applies(value, container));
      assert.deepEqual(inside, [true, true], value);
      const outside = ['/pci-archive/', '/pc/', '/', '/x/pci/'];
      for (const container of outside) assert.equal(applies(value, container), false, container);
    }
    assert.equal(applies('/pci/hi', '/pci/hi/x/'), true);
    assert.equal(applies('/pci/hi', '/pci/high/'), false);
    assert.equal(applies('/', '/anything/'), true);
  });

  test('a rule that names neither container nor conditions speaks about no token', () => {
    const rules = [{ priority: 1, permissions: ['token:read'], transform: 'reveal' }] as const;
    const policy = access.policyOf({ permissions: [], rules });
    assert.equal(access.holds(policy, 'token:read'), false);
  });
});

suite('Grant', () => {
  test('cannot be written down by anybody else', () => {
    // @ts-expect-error only decide makes grants
    const forged: access.Grant = { permission: 'token:read', transform: 'reveal' };
    assert(forged);
  });
});

suite('holds', () => {
  test('is true for a plain permission and for one that some rule gives, false otherwise', () => {
    const rules: WireRule[] = [
      { priority: 1, container: '/a/', permissions: ['token:read'], transform: 'mask' },
    ];
    const policy = policyOf({ permissions: ['log:read', 'token:use'], rules });
    const held = (['log:read', 'token:use', 'token:read'] as const).map((p) =>
      access.holds(policy, p),
    );
    assert.deepEqual(held, [true, true, true]);
    const others = (['report:read', 'token:create'] as const).map((p) => access.holds(policy, p));
    assert.deepEqual(others, [false, false]);
  });
});

suite('scopesOf', () => {
  const inside = ({ id, container }: access.RuleScope, about: ModelToken) =>
    fits(id, about.id ?? '') && fits(container, about.container.toLowerCase());
  const fits = ({ text, exact }: access.Pattern, actual: string) =>
    actual.slice(0, exact ? undefined : text.length) === text;

  test('holds a token exactly when decide grants, on random policies', () => {
    fc.assert(
      fc.property(
        words,
        fc.constantFrom(...tokenPermissions),
        token,
        (given, permission, about) => {
          const scopes = access.scopesOf(policyOf(given), permissionOf(permission));
          const listed = scopes.some((scope) => inside(scope, about));
          assert.equal(listed, transformOf(given, permission, about) !== undefined);
        },
      ),
      { numRuns: 2000 },
    );
  });

  test('leaves out a container below another one', () => {
    const rules = ['/pci/high/', '/pci/', '/pci/low/', '/bank/'].map((container, index) => ({
      priority: index + 1,
      container,
      permissions: ['token:read'],
      transform: 'mask' as const,
    }));
    const scopes = access.scopesOf(policyOf({ permissions: [], rules }), 'token:read');
    assert.deepEqual(
      scopes.map(({ container }) => container.text),
      ['/pci/', '/bank/'],
    );
  });
});

suite('covers', () => {
  const sight = ['redact', 'mask', 'reveal'];
  const pair = words.chain((authorizer) =>
    fc.record({ authorizer: fc.constant(authorizer), granted: grantedBy(authorizer) }),
  );

  test('never lets a grant see what its authorizer could not, on random pairs', () => {
    let covered = 0;
    let refused = 0;
    fc.assert(
      fc.property(pair, fc.array(token, { minLength: 8, maxLength: 8 }), (given, tokens) => {
        if (!access.covers(policyOf(given.authorizer), policyOf(given.granted))) {
          refused += 1;
          return;
        }
        for (const permission of tokenPermissions) {
          for (const about of tokens) {
            const transform = transformOf(given.granted, permission, about);
            if (transform === undefined) continue;
            const own = transformOf(given.authorizer, permission, about);
            assert(own !== undefined, 'granted what the authorizer does not hold');
            const enough = sight.indexOf(own) >= sight.indexOf(transform);
            assert(enough || permission === 'token:delete', `${own} is less than ${transform}`);
            covered += 1;
          }
        }
      }),
      { numRuns: 6000 },
    );
    assert(covered > 2000 && refused > 1000, `vacuous: ${covered} covered, ${refused} refused`);
  });

  test('lets everybody grant exactly what they hold', () => {
    fc.assert(
      fc.property(words, (given) => {
        assert(access.covers(policyOf(given), policyOf(given)));
      }),
      { numRuns: 2000 },
    );
  });

  test('lets everybody grant nothing, and nobody grant something', () => {
    const nothing: PolicyWords = { permissions: [], rules: [] };
    fc.assert(
      fc.property(words, (given) => {
        assert(access.covers(policyOf(given), policyOf(nothing)));
        const something = access.covers(policyOf(nothing), policyOf(given));
        if (given.permissions.length > 0) assert.equal(something, false);
      }),
    );
  });

  const grant = (where: Partial<WireRule>, transform: access.Transform): PolicyWords => ({
    permissions: [],
    rules: [{ priority: 1, permissions: ['token:read'], transform, ...where }],
  });
  const oneToken: Partial<WireRule> = {
    conditions: [{ attribute: 'id', operator: 'equals', value: 'abc' }],
  };
  const inPci: Partial<WireRule> = {
    conditions: [{ attribute: 'container', operator: 'starts_with', value: '/PCI/h' }],
  };
  const plainRead: PolicyWords = { permissions: ['token:read'], rules: [] };

  const cases: Record<
    string,
    { authorizer: PolicyWords; granted: PolicyWords; expected: boolean }
  > = {
    'a plain permission masks: one token masked may be granted': {
      authorizer: plainRead,
      granted: grant(oneToken, 'mask'),
      expected: true,
    },
    'a plain permission masks: revealing one token may not be granted': {
      authorizer: plainRead,
      granted: grant(oneToken, 'reveal'),
      expected: false,
    },
    'the plain permission itself may be granted': {
      authorizer: plainRead,
      granted: plainRead,
      expected: true,
    },
    'a container may not be widened': {
      authorizer: grant({ container: '/pci/' }, 'reveal'),
      granted: grant({ container: '/' }, 'mask'),
      expected: false,
    },
    'one token of unknown container needs every container': {
      authorizer: grant({ container: '/pci/' }, 'reveal'),
      granted: grant(oneToken, 'mask'),
      expected: false,
    },
    'a container condition may lie within a container': {
      authorizer: grant({ container: '/pci/' }, 'reveal'),
      granted: grant(inPci, 'reveal'),
      expected: true,
    },
    'the beginning of a container is not that of its neighbor': {
      authorizer: grant({ container: '/pci/' }, 'reveal'),
      granted: grant(
        { conditions: [{ attribute: 'container', operator: 'starts_with', value: '/pc' }] },
        'mask',
      ),
      expected: false,
    },
    'a condition without the last slash grants no more than the container': {
      authorizer: grant({ container: '/pci/' }, 'reveal'),
      granted: grant(
        { conditions: [{ attribute: 'container', operator: 'starts_with', value: '/pci' }] },
        'reveal',
      ),
      expected: true,
    },
    'a less revealing rule in front of the wider one is respected': {
      authorizer: {
        permissions: [],
        rules: [
          ...grant({ container: '/pci/high/' }, 'mask').rules,
          ...grant({ container: '/', priority: 2 }, 'reveal').rules,
        ],
      },
      granted: grant({ container: '/pci/' }, 'reveal'),
      expected: false,
    },
    'a more revealing rule in front hides the less revealing one behind it': {
      authorizer: {
        permissions: ['token:read'],
        rules: grant({ container: '/pci/' }, 'reveal').rules,
      },
      granted: grant({ container: '/pci/high/' }, 'reveal'),
      expected: true,
    },
    'deleting returns no data, so its transform is no excess': {
      authorizer: { permissions: ['token:delete'], rules: [] },
      granted: grant({ container: '/', permissions: ['token:delete'] }, 'reveal'),
      expected: true,
    },
    'another permission is another matter': {
      authorizer: grant({ container: '/' }, 'reveal'),
      granted: grant({ container: '/', permissions: ['token:use'] }, 'redact'),
      expected: false,
    },
    'a permission without containers must be held': {
      authorizer: plainRead,
      granted: { permissions: ['token-intent:create'], rules: [] },
      expected: false,
    },
    'a permission without containers that is held may be granted': {
      authorizer: { permissions: ['token-intent:create'], rules: [] },
      granted: { permissions: ['token-intent:create'], rules: [] },
      expected: true,
    },
  };
  for (const [name, { authorizer, granted, expected }] of Object.entries(cases)) {
    test(name, () => {
      assert.equal(access.covers(policyOf(authorizer), policyOf(granted)), expected);
    });
  }
});
