/** The log that a command reads: of the configured database or a copy of it, and of which tenants. */

import { tenantMeant } from '../../access/tenants/handle.ts';
import { tenantsWithLogs } from '../../audit/read.ts';
import type { TenantId } from '../../base/ids.ts';
import { databasePlace, readConfig } from '../../runtime/config/config.ts';
import { openReadOnly, type ReadOnlyStore } from '../../store/open/read-only.ts';
import { tenantNamed } from '../../store/queries/tenants.ts';
import type { Flag, Flags } from '../terminal/command.ts';
import { requireOne } from '../terminal/operator.ts';
import type { Terminal } from '../terminal/terminal.ts';

export const placeFlags: Readonly<Record<'database' | 'tenant', Flag>> = {
  database: {
    kind: 'string',
    value: 'PLACE',
    meaning: 'a copy: SQLite file, its directory, or postgres://… (default: as configured)',
  },
  tenant: {
    kind: 'string',
    value: 'TENANT',
    meaning: 'only the log of the tenant of this id or name',
  },
};

/** The text of a flag, if it was given. */
export function optionalText(flags: Flags, name: string): string | undefined {
  const value = flags[name];
  return typeof value === 'string' ? value : undefined;
}

/** Opens the log for reading alone, and finds out whose it is. */
export async function openLog(
  terminal: Terminal,
  flags: Flags,
): Promise<{ readonly store: ReadOnlyStore; readonly tenants: readonly TenantId[] }> {
  const asked = optionalText(flags, 'tenant');
  const store = await openReadOnly(placeOf(terminal, flags));
  try {
    const tenants =
      asked === undefined ? await tenantsWithLogs(store) : [await tenantOf(store, asked)];
    return { store, tenants };
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function tenantOf(store: ReadOnlyStore, asked: string): Promise<TenantId> {
  const rows = await store.select(tenantNamed(asked));
  return requireOne(tenantMeant(rows, asked));
}

function placeOf({ env }: Terminal, flags: Flags): string {
  const named = optionalText(flags, 'database');
  if (named !== undefined)
    return /^postgres(?:ql)?:\/\//.test(named) ? databasePlace(named, env) : named;
  const { databaseUrl, dataDir } = readConfig(env);
  return databaseUrl ?? dataDir;
}
