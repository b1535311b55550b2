/** The entity that contains running code, such as a reactor. The rights of the code come from it, and end with it. */

import type { CallerLookup } from '../../access/authority.ts';
import type { ApplicationId, ProxyId, ReactorId } from '../../base/ids.ts';
import type { Permission } from '../../rules/permissions.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { CodeRuntime } from '../code/code-runtime.ts';

export interface HolderOfCode {
  readonly entity: 'reactor' | 'proxy';
  readonly id: ReactorId | ProxyId;
  /**
   * Returns the rights that the code has at this moment.
   * @throws VaultError `not_found` if the holder was deleted or no longer has code; `integrity` if it was altered
   * outside the vault.
   */
  lentNow(store: Store, tenant: Tenant): Promise<CodeRights | undefined>;
  /** The lookup of the current rights of a caller without a key, if the holder may be called without one. */
  withoutKey?(store: Store): NonNullable<CallerLookup['withoutKey']>;
}

/** The rights of an application, or the code's own permissions. */
export type CodeRights =
  | { readonly application: ApplicationId }
  | { readonly permissions: readonly Permission[] };

interface LendingDefinition {
  readonly application_id: ApplicationId | null;
  readonly runtime: Pick<CodeRuntime, 'permissions'>;
}

/** The rights in a definition of either image; `undefined` if it lends none. */
export function rightsIn({ application_id, runtime }: LendingDefinition): CodeRights | undefined {
  if (application_id !== null) return { application: application_id };
  return runtime.permissions.length > 0 ? { permissions: runtime.permissions } : undefined;
}
