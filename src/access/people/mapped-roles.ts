/** Which applications the operator gives to people for what the identity provider says about them. */
import { type ApplicationId, parseUuid, type TenantId } from '../../base/ids.ts';
import type { JsonObject } from '../../base/json.ts';
import { ifProven } from '../../rules/proven-row.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import { tenantNamed } from '../../store/queries/tenants.ts';
import type { Store } from '../../store/store.ts';
import { tenantMeant } from '../tenants/handle.ts';

/**
 * One line of the operator's mapping. Only the operator writes it: an attribute that a tenant sets could name the group
 * of another tenant, and people would sign in where they do not belong.
 */
export interface RoleRule {
  /** The claim of the ID token. */
  readonly claim: string;
  /** What the claim is, or one of what it lists. */
  readonly value: string;
  /** The id or the handle of the tenant. */
  readonly tenant: string;
  readonly application: string;
}

/** A tenant of the mapping, and what the claims of a person give there. */
export interface MappedTenant {
  readonly tenant: Tenant;
  /** Empty where nothing of the person is mapped. Applications that are gone are left out. */
  readonly roles: readonly ApplicationId[];
}

export interface MappingTools {
  readonly store: Store;
  readonly tenants: Pick<Tenants, 'find'>;
}

/** Every tenant that the mapping names and that exists, in the order of the mapping. */
export async function mappedTenants(
  tools: MappingTools,
  rules: readonly RoleRule[],
  claims: JsonObject,
): Promise<readonly MappedTenant[]> {
  const names = [...new Set(rules.map(({ tenant }) => tenant))];
  const found = await Promise.all(names.map((name) => tenantCalled(tools, name)));
  const byId = new Map<TenantId, { readonly tenant: Tenant; readonly names: string[] }>();
  for (const [at, tenant] of found.entries()) {
    const name = names[at] ?? '';
    if (!tenant) continue;
    const known = byId.get(tenant.id);
    if (known) known.names.push(name);
    else byId.set(tenant.id, { tenant, names: [name] });
  }
  return Promise.all(
    [...byId.values()].map(async ({ tenant, names: own }) => {
      const held = rules.filter((rule) => own.includes(rule.tenant) && isHeld(rule, claims));
      return { tenant, roles: await existing(tools.store, tenant, held) };
    }),
  );
}

/** The applications of the tenant that some rule gives, whatever the person's claims. */
export function rolesNamedIn(
  rules: readonly RoleRule[],
  { id, name }: Pick<Tenant, 'id' | 'name'>,
): ReadonlySet<ApplicationId> {
  const own = rules.filter(({ tenant }) => tenant === name || parseUuid(tenant) === id);
  return new Set(own.flatMap(({ application }) => parseUuid<ApplicationId>(application) ?? []));
}

async function tenantCalled({ store, tenants }: MappingTools, name: string) {
  const meant = tenantMeant(await store.select(tenantNamed(name)), name);
  return meant === undefined || meant === 'ambiguous' ? undefined : tenants.find(meant);
}

/** An address counts only if the provider says that it belongs to the person: people can type any into some. */
function isHeld({ claim, value }: RoleRule, claims: JsonObject): boolean {
  if (claim === 'email' && claims['email_verified'] !== true) return false;
  const held = claims[claim];
  return held === value || (Array.isArray(held) && held.includes(value));
}

async function existing(
  store: Store,
  tenant: Tenant,
  rules: readonly RoleRule[],
): Promise<readonly ApplicationId[]> {
  const ids = new Set(
    rules.flatMap(({ application }) => parseUuid<ApplicationId>(application) ?? []),
  );
  const found = await Promise.all(
    [...ids].map(async (application_id) => {
      const row = await store.get('applications', { tenant_id: tenant.id, application_id });
      return row && ifProven(tenant, 'applications', row) ? [application_id] : [];
    }),
  );
  return found.flat();
}
