/** An explanation says what the decision says, on random policies. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Container } from '../../src/base/container.ts';
import type { TokenId } from '../../src/base/ids.ts';
import { parseRules, type WireRule } from '../../src/rules/access-rules.ts';
import { explainDecision } from '../../src/rules/explanation.ts';
import { type AccessSubject, decide, policyOf } from '../../src/rules/policy.ts';

const tokenPermissions = ['token:read', 'token:update', 'token:delete', 'token:use'] as const;
const containers = ['/', '/a/', '/a/b/', '/a-b/', '/c/'];
const transforms = ['redact', 'mask', 'reveal'] as const;

const rule = fc.record({
  permissions: fc.uniqueArray(fc.constantFrom(...tokenPermissions), { minLength: 1, maxLength: 2 }),
  transform: fc.constantFrom(...transforms),
  place: fc.oneof(
    fc.record({ container: fc.constantFrom(...containers) }),
    fc.record({
      conditions: fc.constantFrom(
        [{ attribute: 'id' as const, operator: 'equals' as const, value: 'one' }],
        [{ attribute: 'id' as const, operator: 'starts_with' as const, value: 't' }],
      ),
    }),
  ),
});

const subject = fc.record({
  id: fc.constantFrom('one', 'two', undefined),
  container: fc.constantFrom(...containers),
});

test('the rule that is said to decide is the one that decides, and no other is', () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(
      fc.array(rule, { maxLength: 6 }),
      fc.uniqueArray(fc.constantFrom(...tokenPermissions)),
      fc.constantFrom(...tokenPermissions),
      subject,
      fc.boolean(),
      (given, permissions, permission, about, masked) => {
        const wire: WireRule[] = given.map(({ place, ...rest }, index) => ({
          ...rest,
          ...place,
          priority: given.length - index,
        }));
        const access = { permissions, rules: parseRules(wire, { kind: 'session' }) };
        const policy = policyOf(access);
        const at: AccessSubject = {
          id: about.id as TokenId | undefined,
          container: about.container as Container,
        };
        const grant = decide(policy, permission, at);
        const said = explainDecision({ access, policy, permission, subject: at, masked });
        assert.equal(said.allowed, grant !== undefined);
        assert.equal(said.transform, grant?.transform);
        assert.deepEqual(said.rule, grant?.rule);
        const deciding = said.rules.filter(({ verdict }) => verdict === 'decides');
        assert.deepEqual(
          deciding.map(({ priority }) => priority),
          grant?.rule ? [grant.rule.priority] : [],
        );
        assert.equal(said.decided_by, grant ? (grant.rule ? 'rule' : 'permission') : 'nothing');
        if (permission === 'token:delete') assert.equal(said.shown, 'nothing');
        seen.set(said.decided_by, (seen.get(said.decided_by) ?? 0) + 1);
      },
    ),
    { numRuns: 3000 },
  );
  for (const outcome of ['rule', 'permission', 'nothing']) {
    assert.ok((seen.get(outcome) ?? 0) > 200, `the random policies hardly ever gave ${outcome}`);
  }
});
