/** Whose calls are begun next. */
import type { TenantId } from '../../base/ids.ts';

/** In the order of ids. Otherwise two tenants whose calls follow one another would leave no place to any other. */
export function tenantsInTurn(
  ids: readonly TenantId[],
  last: TenantId | undefined,
): readonly TenantId[] {
  const next = last === undefined ? 0 : ids.findIndex((id) => id > last);
  return next < 0 ? ids : [...ids.slice(next), ...ids.slice(0, next)];
}
