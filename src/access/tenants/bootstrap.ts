/** The first start: in an empty store, one tenant and one management key. */

import { oldLogsAt } from '../../audit/retention.ts';
import type { Clock, Instant } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { type ApplicationId, newUuid } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { hashApiKey } from '../../keys/api-key.ts';
import type { Operator } from '../../rules/caller.ts';
import { entryOf, systemEntry } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { type Permission, permissionAllowed, permissions } from '../../rules/permissions.ts';
import type { Tenant, Tenants, TenantType } from '../../rules/tenant.ts';
import { anyTenant } from '../../store/queries/tenants.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { type NewKey, newKey, viewKey } from '../applications/api-key-row.ts';
import { applicationRow } from '../applications/row.ts';
import { dropBootstrapKey, takeBootstrapKey } from './bootstrap-key-file.ts';

export interface Bootstrapped {
  readonly tenant: Tenant;
  /** The management key; it exists nowhere else. `undefined` when the operator supplied it, or it is in a file. */
  readonly newKey: string | undefined;
}

export interface BootstrapSettings {
  /** Its handle. */
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

/** Where the management key of the first start comes from. */
export interface FirstStartSettings extends BootstrapSettings {
  /** The file with the key, or for it. */
  readonly keyFile?: string | undefined;
}

/**
 * `undefined` when the store has a tenant already, also when another server was faster. A later start does not look at
 * the file of the key.
 * @throws BootstrapKeyError when that file cannot be used or written.
 */
export async function bootstrap(
  tools: BootstrapTools,
  { keyFile, ...settings }: FirstStartSettings,
): Promise<Bootstrapped | undefined> {
  const stored = await tools.store.select(anyTenant);
  if (stored.length > 0) return undefined;
  if (keyFile === undefined) return createFirstTenant(tools, settings);
  const key = takeBootstrapKey(keyFile, settings.type, tools.random);
  const bootstrapped = await createFirstTenant(tools, { ...settings, key: key.text });
  if (bootstrapped === undefined && key.created) {
    const isStored = await tools.store.get('api_keys', { key_hash: hashApiKey(key.text) });
    // Of two servers with one file, the one that wrote it may be the slower one.
    if (!isStored) dropBootstrapKey(keyFile);
  }
  return bootstrapped;
}

async function createFirstTenant(
  tools: BootstrapTools,
  settings: BootstrapSettings,
): Promise<Bootstrapped | undefined> {
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
  tools: BootstrapTools,
  settings: BootstrapSettings,
): Promise<Bootstrapped> {
  const { store, tenants, clock, random } = tools;
  const now = clock.now();
  const {
    tenant,
    row: tenantRow,
    guard,
  } = await tenants.draft({
    name: settings.tenant,
    type: settings.type,
  });
  const { row, key } = managementApplication({
    tenant,
    now,
    random,
    supplied: settings.key,
  });
  const outcome = await store.commit({
    remove: { vault_keys: guard.remove },
    insert: {
      vault_keys: guard.insert,
      tenants: [tenantRow],
      applications: [row],
      api_keys: [key.row],
      due_work: [oldLogsAt(tenant, now)],
    },
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
  const { conflict } = outcome;
  if (conflict === 'tenants.name') {
    throw new VaultError('conflict', { public: 'A tenant with this name already exists.' });
  }
  if (conflict?.startsWith('api_keys')) {
    throw new VaultError('conflict', { public: 'This key already exists.' });
  }
  // Another tenant's id has the same prefix as the drawn one, so rows could not tell the two apart, or the key of the
  // vault was replaced since.
  if (conflict !== undefined) return createTenantWithKey(tools, settings);
  return { tenant, newKey: settings.key === undefined ? key.text : undefined };
}

export interface NewManagement {
  readonly tenant: Tenant;
  readonly now: Instant;
  readonly random: Random;
  readonly supplied?: string | undefined;
}

/** An application with every permission that a management application may hold, and its key. */
function managementApplication({ tenant, now, random, supplied }: NewManagement): {
  readonly row: Row<'applications'>;
  readonly key: NewKey;
} {
  const id = newUuid<ApplicationId>(random);
  const kind = 'management';
  const access = { permissions: managementPermissions(), rules: [] };
  const key = newKey({ tenant, application: id, kind, by: null, now, random, supplied });
  const { key_id } = key.row;
  const name = 'Management';
  return {
    row: applicationRow({ tenant, id, name, kind, access, key: key_id, by: null, now }),
    key,
  };
}

/** Restores the access of an operator who lost every management key. */
export function createManagement(
  { clock, random }: Pick<BootstrapTools, 'clock' | 'random'>,
  operator: Operator,
): Decide {
  return async () => {
    const now = clock.now();
    const { row, key } = managementApplication({ tenant: operator.tenant, now, random });
    return {
      change: {
        insert: { applications: [row], api_keys: [key.row] },
        entries: [
          entryOf(operator, now, {
            entity: 'application',
            id: row.application_id,
            operation: 'create',
          }),
          entryOf(operator, now, {
            entity: 'application_key',
            id: key.row.key_id,
            operation: 'create',
          }),
        ],
      },
      reply: { status: 201, body: viewKey(key.row, key.text) },
    };
  };
}

function managementPermissions(): Permission[] {
  return (Object.keys(permissions) as Permission[]).filter((name) =>
    permissionAllowed(name, 'management'),
  );
}
