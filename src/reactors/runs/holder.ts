/** What holds code that runs, such as a reactor: all that the code does derives from it, and ends with it. */

import type { EndedAuthority, StandingAuthority } from '../../access/authority.ts';
import type { ApplicationId, ProxyId, ReactorId } from '../../base/ids.ts';
import type { Caller } from '../../rules/caller.ts';
import type { Permission } from '../../rules/permissions.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { CodeRuntime } from '../code/code-runtime.ts';

export interface HolderOfCode {
  readonly entity: 'reactor' | 'proxy';
  readonly id: ReactorId | ProxyId;
  /**
   * What the code is lent at this moment.
   * @throws VaultError `not_found` once the holder is deleted, or has no code any more; `integrity` where it was
   * altered outside the vault.
   */
  lentNow(store: Store, tenant: Tenant): Promise<CodeRights | undefined>;
  /** What a caller without a key may do at this moment through the holder, where that asks for none. */
  authorityNow?(store: Store, caller: Caller): Promise<StandingAuthority | EndedAuthority>;
}

/** The rights of an application, or permissions of the code's own. */
export type CodeRights =
  | { readonly application: ApplicationId }
  | { readonly permissions: readonly Permission[] };

interface LendingDefinition {
  readonly application_id: ApplicationId | null;
  readonly runtime: Pick<CodeRuntime, 'permissions'>;
}

/** What a definition lends, by either image; `undefined` where that is nothing. */
export function rightsIn({ application_id, runtime }: LendingDefinition): CodeRights | undefined {
  if (application_id !== null) return { application: application_id };
  return runtime.permissions.length > 0 ? { permissions: runtime.permissions } : undefined;
}
