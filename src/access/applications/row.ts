/** An application as it is stored, and the permissions and rules in a request. */
import type { Instant } from '../../base/clock.ts';
import { invalid } from '../../base/errors.ts';
import type { ApplicationId, KeyId } from '../../base/ids.ts';
import { createValidationErrors } from '../../base/validation-errors.ts';
import { parsePermissions, parseRules, type WireRule } from '../../rules/access-rules.ts';
import type { EgressPolicy } from '../../rules/egress-policies.ts';
import type { ApplicationKind, HolderKind } from '../../rules/permissions.ts';
import type { Access } from '../../rules/policy.ts';
import { proven } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';

/** Permissions and rules as the wire schema lets them through; null means absent. */
export interface AccessRequest {
  readonly permissions?: readonly string[] | null;
  readonly rules?: readonly WireRule[] | null;
}

/** @throws VaultError `validation_failed` naming every attribute that is wrong, or that both are empty. */
export function readAccess({ permissions, rules }: AccessRequest, kind: HolderKind): Access {
  const errors = createValidationErrors();
  const held = errors.attempt(() => parsePermissions(permissions ?? [], kind)) ?? [];
  const ruled = errors.attempt(() => parseRules(rules ?? [], { kind })) ?? [];
  errors.settle();
  if (held.length + ruled.length === 0) {
    throw invalid('permissions', 'must not be empty unless rules are given');
  }
  return { permissions: held, rules: ruled };
}

type StoredAccess = Pick<Row<'applications'>, 'permissions' | 'rules'>;

/** The access of an application or a session. Stored values were checked when they were stored. */
export function accessOf(row: StoredAccess): Access {
  return {
    permissions: JSON.parse(row.permissions) as Access['permissions'],
    rules: JSON.parse(row.rules) as Access['rules'],
  };
}

export function storedAccess({ permissions, rules }: Access): StoredAccess {
  return { permissions: JSON.stringify(permissions), rules: JSON.stringify(rules) };
}

/** How many values each key may have revealed; a limit that is absent does not apply. */
export interface EgressBudget {
  readonly per_hour?: number | undefined;
  readonly per_day?: number | undefined;
}

export const egressBudgetMax = 1_000_000_000;

export function storedBudget({
  egress_budget: text,
}: Pick<Row<'applications'>, 'egress_budget'>): EgressBudget | undefined {
  return text === null ? undefined : (JSON.parse(text) as EgressBudget);
}

export function budgetColumn(
  budget: EgressBudget | null | undefined,
): Pick<Row<'applications'>, 'egress_budget'> {
  const { per_hour, per_day } = budget ?? {};
  const isNone = per_hour === undefined && per_day === undefined;
  return { egress_budget: isNone ? null : JSON.stringify({ per_hour, per_day }) };
}

/** `undefined` for an application without policies, which reaches nothing. */
export function storedPolicies({
  egress,
}: Pick<Row<'applications'>, 'egress'>): readonly EgressPolicy[] | undefined {
  return egress === null ? undefined : (JSON.parse(egress) as readonly EgressPolicy[]);
}

export function policiesColumn(
  policies: readonly EgressPolicy[] | undefined,
): Pick<Row<'applications'>, 'egress'> {
  return { egress: policies === undefined ? null : JSON.stringify(policies) };
}

export interface NewApplication {
  readonly tenant: Tenant;
  readonly id: ApplicationId;
  readonly name: string;
  readonly kind: ApplicationKind;
  readonly access: Access;
  readonly budget?: EgressBudget | null | undefined;
  readonly egress?: readonly EgressPolicy[] | undefined;
  /** Of its pages; `undefined` where it lists none. */
  readonly origins?: readonly string[] | undefined;
  /** Its first key, if it gets one. */
  readonly key: KeyId | undefined;
  /** The application that requested it; null if the operator did. */
  readonly by: ApplicationId | null;
  readonly now: Instant;
}

export function applicationRow(application: NewApplication): Row<'applications'> {
  const { tenant, key } = application;
  return proven(tenant, 'applications', {
    tenant_id: tenant.id,
    application_id: application.id,
    version: 1,
    name: application.name,
    type: application.kind,
    ...storedAccess(application.access),
    key_ids: JSON.stringify(key === undefined ? [] : [key]),
    ...storedOrigins(application.origins),
    created_by: application.by,
    created_at: application.now,
    modified_by: null,
    modified_at: null,
    ...budgetColumn(application.budget),
    ...policiesColumn(application.egress),
  });
}

/** The origins of the pages that may use its keys; `undefined` where the application lists none. */
export function originsOf({
  origins,
}: Pick<Row<'applications'>, 'origins'>): readonly string[] | undefined {
  if (origins === null) return undefined;
  const listed: readonly string[] = JSON.parse(origins);
  return listed;
}

export function storedOrigins(
  origins: readonly string[] | undefined,
): Pick<Row<'applications'>, 'origins'> {
  return { origins: origins === undefined ? null : JSON.stringify(origins) };
}

/** The keys that the application has. A row of the key directory that is not among them gives no access. */
export function keyIdsOf({ key_ids }: Pick<Row<'applications'>, 'key_ids'>): readonly KeyId[] {
  const ids: readonly KeyId[] = JSON.parse(key_ids);
  return ids;
}

/** The application with other keys; its version is raised, so that concurrent changes of them collide. */
export function withKeyIds(
  tenant: Tenant,
  row: Row<'applications'>,
  ids: readonly KeyId[],
): Row<'applications'> {
  const key_ids = JSON.stringify(ids);
  return proven(tenant, 'applications', { ...row, version: row.version + 1, key_ids });
}
