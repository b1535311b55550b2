/** Why a decision about access fell as it did, rule by rule in the order of asking. */
import { type Permission, permissions } from './permissions.ts';
import {
  type Access,
  type AccessRule,
  type AccessSubject,
  decide,
  type Grant,
  holds,
  type Policy,
} from './policy.ts';

export interface Decision {
  readonly access: Access;
  /** Of that access; of less, where it is a session that has lost it. */
  readonly policy: Policy;
  readonly permission: Permission;
  /** None for a permission that is not about tokens. */
  readonly subject: AccessSubject | undefined;
  /** False when the token is known to have no mask. */
  readonly masked: boolean;
}

/** What a rule had to say: it decides, or why it does not. */
export type RuleVerdict = 'decides' | 'other_permission' | 'other_tokens' | 'not_reached' | 'void';

export interface Explanation {
  readonly allowed: boolean;
  readonly decided_by: 'rule' | 'permission' | 'nothing';
  readonly rule?: AccessRule;
  readonly transform?: Grant['transform'];
  readonly shown: 'plaintext' | 'masked' | 'nothing';
  readonly reason: string;
  readonly rules: readonly (AccessRule & { readonly verdict: RuleVerdict })[];
}

export function explainDecision(decision: Decision): Explanation {
  const { policy, permission, subject } = decision;
  const grant = subject && decide(policy, permission, subject);
  const allowed = subject ? grant !== undefined : holds(policy, permission);
  const shown = shownBy(grant, decision);
  return {
    allowed,
    decided_by: allowed ? (grant?.rule ? 'rule' : 'permission') : 'nothing',
    ...(grant?.rule && { rule: grant.rule }),
    ...(grant && { transform: grant.transform }),
    shown,
    reason: [reasonOf(grant, allowed, decision), sightOf(grant, decision)].join(' ').trim(),
    rules: verdictsOf(decision, grant),
  };
}

function shownBy(grant: Grant | undefined, decision: Decision): Explanation['shown'] {
  if (!grant || permissions[decision.permission].impliedTransform === undefined) return 'nothing';
  if (permissions[decision.permission].wholeValueTo !== undefined) return 'plaintext';
  if (grant.transform === 'reveal') return 'plaintext';
  return grant.transform === 'mask' && decision.masked ? 'masked' : 'nothing';
}

function reasonOf(grant: Grant | undefined, allowed: boolean, decision: Decision): string {
  const { permission, policy, subject } = decision;
  if (policy.size === 0) {
    return 'The session is not authorized, or the application that authorized it could no longer do so.';
  }
  if (grant?.rule) {
    return `The rule with priority ${grant.rule.priority} is the first that gives ${permission} here.`;
  }
  if (!allowed) return `Neither a rule nor a plain permission gives ${permission} here.`;
  if (!subject) return `${permission} is held as a plain permission, and is not about tokens.`;
  return `No rule gives ${permission} here, so the plain permission decides, like a last rule on /.`;
}

/** What the transform does to the data, where the permission returns any. */
function sightOf(grant: Grant | undefined, { permission, masked }: Decision): string {
  if (!grant || permissions[permission].impliedTransform === undefined) return '';
  const { wholeValueTo } = permissions[permission];
  if (wholeValueTo !== undefined) {
    return (
      `Whatever the transform, the value goes whole to ${wholeValueTo}. ` +
      'It may come back to the caller through them.'
    );
  }
  if (grant.transform === 'mask' && !masked) {
    return 'Data is shown through the mask; the token has none, so its data is left out.';
  }
  return {
    reveal: 'Data is shown as it is.',
    mask: 'Data is shown through the mask.',
    redact: 'Data is left out.',
  }[grant.transform];
}

function verdictsOf(
  { access, policy, permission }: Decision,
  grant: Grant | undefined,
): Explanation['rules'] {
  let decided = false;
  return access.rules
    .toSorted((a, b) => a.priority - b.priority)
    .map((rule) => {
      const verdict = policy.size === 0 ? 'void' : verdictOf(rule);
      if (verdict === 'decides') decided = true;
      return { ...rule, verdict };
    });

  function verdictOf(rule: AccessRule): RuleVerdict {
    if (decided) return 'not_reached';
    if (!rule.permissions.includes(permission)) return 'other_permission';
    if (grant?.rule?.priority === rule.priority) return 'decides';
    return 'other_tokens';
  }
}
