/** Who acts where code asks for tokens: the application that lends its rights, or permissions of the code's own. */
import { type ApplicationId, noApplication } from '../../lib/ids.ts';
import { authenticated, type Caller } from '../../rules/caller.ts';
import type { Permission } from '../../rules/permissions.ts';
import { policyOf } from '../../rules/policy.ts';
import { requireProven } from '../../rules/proven-row.ts';
import type { Store } from '../../store/store.ts';
import { accessOf } from '../applications/row.ts';

/** What an administrator gave the code; `undefined` where that is nothing. */
export type CodeRights =
  | { readonly application: ApplicationId }
  | { readonly permissions: readonly Permission[] };

const nothing = { permissions: [], rules: [] };

/**
 * With the rights of this moment: an application that was deleted has none.
 * @param caller of the code, where the log names whoever called when the rights are nobody else's.
 * @throws VaultError `integrity` where the application was altered outside the vault.
 */
export async function actorOf(store: Store, caller: Caller, rights: CodeRights): Promise<Caller> {
  const { tenant, origin } = caller;
  if ('permissions' in rights) {
    const { application, session, anonymous } = caller;
    const policy = policyOf({ permissions: rights.permissions, rules: [] });
    const who = { tenant, application, session, origin, ...(anonymous && { anonymous }) };
    return authenticated({ ...who, kind: 'private', policy });
  }
  const key = { tenant_id: tenant.id, application_id: rights.application };
  const row = await store.get('applications', key);
  const proven = row && requireProven(tenant, 'applications', row);
  const kind = proven && proven.type !== 'management' ? proven.type : undefined;
  return authenticated({
    tenant,
    application: proven?.application_id ?? noApplication,
    session: undefined,
    kind: kind ?? 'private',
    policy: policyOf(proven && kind ? accessOf(proven) : nothing),
    origin,
  });
}
