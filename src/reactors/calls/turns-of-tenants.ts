/** The order in which waiting tenants get their calls started. */
import type { TenantId } from '../../base/ids.ts';

/** Round robin in the order of ids. Otherwise two tenants that keep submitting calls would starve all others. */
export function tenantsInTurn(
  ids: readonly TenantId[],
  last: TenantId | undefined,
): readonly TenantId[] {
  const next = last === undefined ? 0 : ids.findIndex((id) => id > last);
  return next < 0 ? ids : [...ids.slice(next), ...ids.slice(0, next)];
}
