/** The first start: in an empty store, one tenant and one management key. */
import type { Clock } from '../lib/clock.ts';
import { VaultError } from '../lib/errors.ts';
import { type ApplicationId, newUuid } from '../lib/ids.ts';
import type { Random } from '../lib/random.ts';
import type { Store } from '../store/store.ts';
import { applicationRow, newKey } from './applications.ts';
import { systemEntry } from './audit.ts';
import { type Permission, permissionAllowed, permissions } from './permissions.ts';
import type { Tenant, Tenants, TenantType } from './tenants.ts';

export interface Bootstrapped {
  readonly tenant: Tenant;
  /** The management key; it exists nowhere else. `undefined` when the operator supplied it. */
  readonly newKey: string | undefined;
}

export interface BootstrapSettings {
  readonly tenant: string;
  readonly type: TenantType;
  /** The management key the operator supplies. */
  readonly key: string | undefined;
}

export interface BootstrapTools {
  readonly store: Store;
  readonly tenants: Tenants;
  readonly clock: Clock;
  readonly random: Random;
}

/** `undefined` when the store has a tenant already, also when another server was faster. */
export async function bootstrap(
  tools: BootstrapTools,
  settings: BootstrapSettings,
): Promise<Bootstrapped | undefined> {
  if ((await tools.tenants.all()).length > 0) return undefined;
  try {
    return await createTenantWithKey(tools, settings);
  } catch (error) {
    if (error instanceof VaultError && error.code === 'conflict') return undefined;
    throw error;
  }
}

/**
 * A tenant and its management application, with every permission such an application may hold.
 * @throws VaultError `conflict` when the name or the supplied key is taken.
 */
export async function createTenantWithKey(
  { store, tenants, clock, random }: BootstrapTools,
  settings: BootstrapSettings,
): Promise<Bootstrapped> {
  const now = clock.now();
  const { tenant, row: tenantRow } = tenants.draft({ name: settings.tenant, type: settings.type });
  const row = applicationRow({
    tenant,
    id: newUuid<ApplicationId>(random),
    name: 'Management',
    kind: 'management',
    access: { permissions: managementPermissions(), rules: [] },
    by: null,
    now,
  });
  const key = newKey({ row, tenant, random, supplied: settings.key });
  const outcome = await store.commit({
    insert: { tenants: [tenantRow], applications: [row], api_keys: [key.row] },
    entries: [
      systemEntry({
        tenant: tenant.id,
        at: now,
        entity: 'tenant',
        id: tenant.id,
        operation: 'create',
      }),
      systemEntry({
        tenant: tenant.id,
        at: now,
        entity: 'application',
        id: row.application_id,
        operation: 'create',
      }),
    ],
  });
  if (outcome.conflict !== undefined) {
    const what = outcome.conflict.startsWith('api_keys') ? 'This key' : 'A tenant of this name';
    throw new VaultError('conflict', { public: `${what} exists.` });
  }
  return { tenant, newKey: settings.key === undefined ? key.text : undefined };
}

function managementPermissions(): Permission[] {
  return (Object.keys(permissions) as Permission[]).filter((name) =>
    permissionAllowed(name, 'management'),
  );
}
