/** Access: the one place that decides which caller may do what to which token, and what the caller sees. */
import type { Brand } from '../base/brand.ts';
import { type Container, rootContainer } from '../base/container.ts';
import type { TokenId } from '../base/ids.ts';
import { type Permission, permissions, type Transform } from './permissions.ts';

export type { Transform } from './permissions.ts';

export interface Condition {
  readonly attribute: 'id' | 'container';
  readonly operator: 'equals' | 'starts_with';
  readonly value: string;
}

/** Covers a container and everything below it, or the tokens that meet all conditions. */
export interface AccessRule {
  readonly description?: string;
  /** From 1. The lowest number is evaluated first. */
  readonly priority: number;
  readonly container?: Container;
  readonly conditions?: readonly Condition[];
  readonly permissions: readonly Permission[];
  readonly transform: Transform;
}

/** What a holder was given: the words of an application, or of an authorized session. */
export interface Access {
  readonly permissions: readonly Permission[];
  readonly rules: readonly AccessRule[];
}

/** Strings that equal `text`, or begin with it. The prefix of a container is the container or an ancestor. */
export interface Pattern {
  readonly text: string;
  readonly exact: boolean;
}

/** The tokens whose id and container both match. Every rule reduces to one such pair. */
export interface RuleScope {
  readonly id: Pattern;
  readonly container: Pattern;
}

/** One rule in evaluation order, for one permission. Its grant is created once and reused. */
interface PolicyStep {
  readonly scope: RuleScope;
  readonly grant: Grant;
}

/** {@link Access} in evaluation order; created by {@link policyOf}. */
export type Policy = Brand<ReadonlyMap<Permission, readonly PolicyStep[]>, 'Policy'>;

/** The proof that {@link decide} granted access. Data is shown only with a grant, and only as it says. */
export type Grant = Brand<
  {
    readonly permission: Permission;
    readonly transform: Transform;
    /** The rule that decided; absent when the plain permission did. */
    readonly rule?: AccessRule;
  },
  'Grant'
>;

/** The token to access. A token that has not been named yet has no id. */
export interface AccessSubject {
  readonly id: TokenId | undefined;
  readonly container: Container;
}

const anyToken: RuleScope = {
  id: { text: '', exact: false },
  container: { text: rootContainer, exact: false },
};

/**
 * Rules come first, by priority. A plain permission is evaluated last: for tokens it is a rule on `/` with its
 * implied transform, or `redact` if it returns no data.
 */
export function policyOf(access: Access): Policy {
  const policy = new Map<Permission, PolicyStep[]>(access.permissions.map((held) => [held, []]));
  for (const rule of access.rules.toSorted((a, b) => a.priority - b.priority)) {
    const scope = scopeOf(rule);
    if (scope === undefined) continue;
    for (const permission of new Set(rule.permissions)) {
      const grant = { permission, transform: rule.transform, rule } as Grant;
      const steps = policy.get(permission);
      if (steps === undefined) policy.set(permission, [{ scope, grant }]);
      else steps.push({ scope, grant });
    }
  }
  for (const permission of new Set(access.permissions)) {
    const { token, impliedTransform: transform = 'redact' } = permissions[permission];
    const grant = { permission, transform } as Grant;
    if (token) policy.get(permission)?.push({ scope: anyToken, grant });
  }
  return policy as ReadonlyMap<Permission, readonly PolicyStep[]> as Policy;
}

/**
 * The first rule that has the permission and covers the token decides; `undefined` when
 * none does, and for a permission that is not about tokens.
 */
export function decide(
  policy: Policy,
  permission: Permission,
  subject: AccessSubject,
): Grant | undefined {
  return policy.get(permission)?.find((step) => inScope(step.scope, subject))?.grant;
}

/**
 * The same for sending a token to a host that an administrator chose. The caller sees nothing of it, so the whole
 * value is sent, whatever transform a rule names.
 */
export function decideUse(policy: Policy, subject: AccessSubject): Grant | undefined {
  return decideSending(policy, subject) ?? whole(decide(policy, 'token:use', subject));
}

/** The same for a host that the caller chose, and may own. */
export function decideSending(policy: Policy, subject: AccessSubject): Grant | undefined {
  return whole(decide(policy, 'proxy:invoke', subject));
}

/** The same for the code of a reactor, whose author decides what it does with the token. */
export function decideReactor(policy: Policy, subject: AccessSubject): Grant | undefined {
  return whole(decide(policy, 'reactor:invoke', subject) ?? decide(policy, 'token:use', subject));
}

function whole(grant: Grant | undefined): Grant | undefined {
  return grant && ({ ...grant, transform: 'reveal' } as Grant);
}

/**
 * For data that the rules of several containers cover: returns what all of them grant. The grant that shows least
 * decides; `undefined` if one of them grants nothing.
 * @param grantAt decides about one of them.
 */
export function grantInAll(
  containers: readonly Container[],
  grantAt: (subject: AccessSubject) => Grant | undefined,
): Grant | undefined {
  let least: Grant | undefined;
  for (const container of containers) {
    const grant = grantAt({ id: undefined, container });
    if (grant === undefined) return undefined;
    if (least === undefined || !showsAsMuch(grant.transform, least.transform)) least = grant;
  }
  return least;
}

/** True if the permission shows something, if only masked, of data whose rules are those of several places. */
export function seesInAll(
  policy: Policy,
  permission: Permission,
  containers: readonly Container[],
): boolean {
  const grant = grantInAll(containers, (subject) => decide(policy, permission, subject));
  return grant !== undefined && grant.transform !== 'redact';
}

/** True if the caller holds any permission on the token. */
export function reaches(policy: Policy, subject: AccessSubject): boolean {
  return policy.values().some((steps) => steps.some((step) => inScope(step.scope, subject)));
}

/** True if the permission is held for any token, or as a plain permission. */
export function holds(policy: Policy, permission: Permission): boolean {
  return policy.has(permission);
}

/**
 * The scopes of a list: {@link decide} grants the permission exactly on the tokens in at least one of them. Scopes
 * within another are omitted.
 */
export function scopesOf(policy: Policy, permission: Permission): readonly RuleScope[] {
  let widest: readonly RuleScope[] = [];
  for (const { scope } of policy.get(permission) ?? []) {
    if (widest.some((other) => includes(other, scope))) continue;
    widest = [...widest.filter((other) => !includes(scope, other)), scope];
  }
  return widest;
}

const sight: Record<Transform, number> = { redact: 0, mask: 1, reveal: 2 };

/**
 * The same access with no transform above the given one. Nothing is left of permissions that send whole values to a
 * destination or to code, because both may give back what they receive.
 */
export function showingAtMost(policy: Policy, most: 'redact' | 'mask'): Policy {
  const lowered = new Map<Permission, readonly PolicyStep[]>();
  for (const [permission, steps] of policy) {
    if (permissions[permission].wholeValueTo !== undefined) continue;
    const limited = steps.map(({ scope, grant }) => {
      const transform = showsAsMuch(most, grant.transform) ? grant.transform : most;
      return { scope, grant: { ...grant, transform } as Grant };
    });
    lowered.set(permission, limited);
  }
  return lowered as ReadonlyMap<Permission, readonly PolicyStep[]> as Policy;
}

/** True if one transform shows at least as much as the other. */
export function showsAsMuch(one: Transform, other: Transform): boolean {
  return sight[one] >= sight[other];
}

/**
 * True only when `authorizer` could do itself everything that `granted` allows: for every token and
 * permission that `granted` grants, it is granted too, with a transform at least as revealing.
 * Transforms are not compared where no data is returned. Sound and not complete: it follows the
 * first-match order of both sides, and returns false where a granted rule is matched only by
 * several of the authorizer's rules together.
 */
export function covers(authorizer: Policy, granted: Policy): boolean {
  for (const [permission, steps] of granted) {
    const own = authorizer.get(permission);
    if (own === undefined) return false;
    if (!steps.every((step, index) => stepCovered(step, steps.slice(0, index), own))) return false;
  }
  return true;
}

function stepCovered(
  step: PolicyStep,
  earlier: readonly PolicyStep[],
  authorizer: readonly PolicyStep[],
): boolean {
  const { permission, transform } = step.grant;
  const returnsData = permissions[permission].impliedTransform !== undefined;
  // An earlier granted rule takes precedence over this one, and an earlier sufficient rule of the authorizer takes
  // precedence over its later ones.
  const settled = earlier.map((other) => other.scope);
  for (const own of authorizer) {
    const shared = intersection(own.scope, step.scope);
    if (shared === undefined) continue;
    if (!returnsData || showsAsMuch(own.grant.transform, transform)) settled.push(own.scope);
    else if (!settled.some((scope) => includes(scope, shared))) return false;
  }
  return settled.some((scope) => includes(scope, step.scope));
}

/** `undefined` if the conditions contradict each other, or the rule names no tokens. */
function scopeOf(rule: AccessRule): RuleScope | undefined {
  const { container, conditions = [] } = rule;
  const scopes = conditions.map(({ attribute, operator, value }) => {
    const exact = operator === 'equals';
    if (attribute === 'id') return { ...anyToken, id: { text: value, exact } };
    const path = value.toLowerCase();
    return { ...anyToken, container: { text: exact ? path : wholeSegments(path), exact } };
  });
  if (container !== undefined)
    scopes.push({ ...anyToken, container: { text: container, exact: false } });
  if (scopes.length === 0) return undefined;
  return scopes.reduce<RuleScope | undefined>(
    (all, one) => all && intersection(all, one),
    anyToken,
  );
}

/** `/pci` means what `/pci/` means, the container and all below it, and not `/pci-archive/`. */
export function wholeSegments(path: string): string {
  return path.endsWith('/') ? path : `${path}/`;
}

function inScope(scope: RuleScope, subject: AccessSubject): boolean {
  return matches(scope.container, subject.container) && matches(scope.id, subject.id ?? '');
}

function matches(pattern: Pattern, text: string): boolean {
  return pattern.exact ? text === pattern.text : text.startsWith(pattern.text);
}

function intersection(a: RuleScope, b: RuleScope): RuleScope | undefined {
  const id = narrower(a.id, b.id);
  const container = narrower(a.container, b.container);
  return id && container ? { id, container } : undefined;
}

/** Two patterns overlap only if one of them includes the other. */
export function narrower(a: Pattern, b: Pattern): Pattern | undefined {
  if (includesPattern(a, b)) return b;
  return includesPattern(b, a) ? a : undefined;
}

function includes(outer: RuleScope, inner: RuleScope): boolean {
  return includesPattern(outer.id, inner.id) && includesPattern(outer.container, inner.container);
}

/** True if every string that matches `inner` matches `outer`. */
export function includesPattern(outer: Pattern, inner: Pattern): boolean {
  if (outer.exact) return inner.exact && inner.text === outer.text;
  return inner.text.startsWith(outer.text);
}
