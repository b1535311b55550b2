/** Whether a row is one that the vault wrote, whatever its table. */
import { VaultError } from '../../lib/errors.ts';
import { requireRun } from '../../rules/bound-row.ts';
import { isProven } from '../../rules/proven-row.ts';
import type { TenantKeys } from '../../rules/tenant.ts';
import type { ExplainedName } from '../../store/row-states.ts';
import type { AnyRow, Row } from '../../store/tables.ts';
import { requireBound } from '../../values/sealed-row.ts';
import { requireBoundIntent } from '../token-intents/row.ts';

const checks: { readonly [T in ExplainedName]: (keys: TenantKeys, row: Row<T>) => boolean } = {
  tenants: (keys, row) => isProven(keys, 'tenants', row),
  applications: (keys, row) => isProven(keys, 'applications', row),
  api_keys: (keys, row) => isProven(keys, 'api_keys', row),
  sessions: (keys, row) => isProven(keys, 'sessions', row),
  reactors: (keys, row) => isProven(keys, 'reactors', row),
  reactor_runs: (keys, row) => opens(() => requireRun(keys, row)),
  proxies: (keys, row) => isProven(keys, 'proxies', row),
  tenant_hosts: (keys, row) => isProven(keys, 'tenant_hosts', row),
  client_keys: (keys, row) => isProven(keys, 'client_keys', row),
  webhooks: (keys, row) => isProven(keys, 'webhooks', row),
  tokens: (keys, row) => opens(() => requireBound(keys, row)),
  token_intents: (keys, row) => opens(() => requireBoundIntent(keys, row)),
};

/** False when anything of the row that decides, or its data, is not as the vault wrote it. */
export function isAuthentic(keys: TenantKeys, table: ExplainedName, row: AnyRow): boolean {
  return checks[table](keys, row as never);
}

function opens(open: () => unknown): boolean {
  try {
    open();
    return true;
  } catch (error) {
    if (error instanceof VaultError && error.code === 'integrity') return false;
    throw error;
  }
}
