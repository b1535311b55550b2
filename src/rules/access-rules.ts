/** Access as a request words it: permissions and rules, parsed. */
import { containerForm, parseContainer } from '../base/container.ts';
import { invalid } from '../base/errors.ts';
import { mayBeginTokenId, parseTokenId } from '../base/ids.ts';
import { closestTo } from '../base/similar.ts';
import { createValidationErrors } from '../base/validation-errors.ts';
import {
  type HolderKind,
  type Permission,
  parsePermission,
  permissionAllowed,
  permissions,
  type Transform,
} from './permissions.ts';
import { type AccessRule, type Condition, wholeSegments } from './policy.ts';

export const permissionsMax = 50;

export const rulesMax = 100;

export const conditionsMax = 10;

export const conditionValueLengthMax = 400;

/** A rule as the wire schema lets it through: the shape is checked, the contents of its strings are not. */
export interface WireRule {
  readonly description?: string | null;
  readonly priority: number;
  readonly container?: string | null;
  readonly conditions?: readonly Condition[] | null;
  readonly permissions: readonly string[];
  readonly transform: Transform;
}

/** Records an error of an attribute. All errors are thrown together at the end. */
type Refuse = (attribute: string, message: string) => void;

/** @throws VaultError `validation_failed` naming every permission that is wrong. */
export function parsePermissions(
  texts: readonly string[],
  kind: HolderKind,
): readonly Permission[] {
  const errors = createValidationErrors();
  const held = readPermissions(texts, (one) => permissionAllowed(one, kind), errors.add);
  errors.settle();
  return held;
}

/** @throws VaultError `validation_failed` naming every attribute that is wrong. */
export function parseRules(
  rules: readonly WireRule[],
  holder: { readonly kind: HolderKind },
): readonly AccessRule[] {
  if (rules.length > rulesMax) throw invalid('rules', `must contain at most ${rulesMax} rules`);
  const errors = createValidationErrors();
  const priorities = new Set<number>();
  const parsed = rules.map((rule, index) => {
    const refuse: Refuse = (attribute, message) =>
      errors.add(`rules[${index}].${attribute}`, message);
    if (priorities.has(rule.priority)) refuse('priority', 'must be unique among the rules');
    priorities.add(rule.priority);
    return readRule(rule, holder.kind, refuse);
  });
  errors.settle();
  return parsed;
}

function readRule(wire: WireRule, kind: HolderKind, refuse: Refuse): AccessRule {
  const { description, priority, transform } = wire;
  if (!Number.isSafeInteger(priority) || priority < 1) {
    refuse('priority', 'must be a whole number from 1');
  }
  if (wire.permissions.length === 0) refuse('permissions', 'must not be empty');
  const mayHold = (one: Permission) => permissions[one].token && permissionAllowed(one, kind);
  return {
    ...(typeof description === 'string' && { description }),
    priority,
    ...readScope(wire, kind, refuse),
    permissions: readPermissions(wire.permissions, mayHold, refuse),
    transform,
  };
}

function readPermissions(
  texts: readonly string[],
  mayHold: (permission: Permission) => boolean,
  refuse: Refuse,
): readonly Permission[] {
  if (texts.length > permissionsMax)
    refuse('permissions', `must contain at most ${permissionsMax} permissions`);
  return texts.flatMap((text, index) => {
    const permission = parsePermission(text);
    if (permission !== undefined && mayHold(permission)) return permission;
    const possible = Object.keys(permissions).filter((one) => mayHold(one as Permission));
    const meant = permission === undefined ? closestTo(text, possible) : undefined;
    const suggestion = meant === undefined ? '' : `did you mean ${meant}? It `;
    const list = possible.length === 0 ? 'no permission' : `one of: ${possible.join(', ')}`;
    refuse(`permissions[${index}]`, `${suggestion}must be ${list}`);
    return [];
  });
}

function readScope(
  { container: text, conditions }: WireRule,
  kind: HolderKind,
  refuse: Refuse,
): Pick<AccessRule, 'container' | 'conditions'> {
  if (conditions) {
    if (kind !== 'session') refuse('conditions', 'are only allowed in the rules of sessions');
    if (typeof text === 'string') refuse('conditions', 'cannot be combined with container');
    refuseConditions(conditions, refuse);
    return { conditions };
  }
  const container = parseContainer(text ?? '');
  if (container === undefined) refuse('container', containerForm);
  return container === undefined ? {} : { container };
}

function refuseConditions(conditions: readonly Condition[], refuse: Refuse): void {
  if (conditions.length < 1 || conditions.length > conditionsMax) {
    refuse('conditions', `must contain 1 to ${conditionsMax} conditions`);
  }
  for (const [index, condition] of conditions.entries()) {
    if (canBeMet(condition)) continue;
    const form = `must have 1 to ${conditionValueLengthMax} characters that this attribute of a token can have`;
    refuse(`conditions[${index}].value`, form);
  }
}

/** A condition that no token could ever meet is a mistake. */
function canBeMet({ attribute, operator, value }: Condition): boolean {
  if (value === '' || value.length > conditionValueLengthMax) return false;
  if (attribute === 'id') {
    return operator === 'equals' ? parseTokenId(value) !== undefined : mayBeginTokenId(value);
  }
  if (operator === 'equals') return parseContainer(value) !== undefined;
  return /^[ -~]*$/.test(value) && parseContainer(wholeSegments(value)) !== undefined;
}
