/** Who acts where code asks for tokens: the application that lends its rights, or permissions of the code's own. */

import { authorityLentBy } from '../../access/authority.ts';
import { noApplication } from '../../base/ids.ts';
import { authenticated, type Caller, isForVisitor } from '../../rules/caller.ts';
import { policyOf } from '../../rules/policy.ts';
import type { Store } from '../../store/store.ts';
import type { CodeRights } from './holder.ts';

const nothing = policyOf({ permissions: [], rules: [] });

/**
 * With the rights of this moment: an application that was deleted has none.
 * @param caller of the code, where the log names whoever called when the rights are nobody else's.
 * @throws VaultError `integrity` where the application was altered outside the vault.
 */
export async function actorOf(
  { store }: { readonly store: Store },
  caller: Caller,
  rights: CodeRights,
): Promise<Caller> {
  const { tenant, origin } = caller;
  const forVisitor = isForVisitor(caller) && ({ forVisitor: true } as const);
  if ('permissions' in rights) {
    const { application, key, session, anonymous } = caller;
    const policy = policyOf({ permissions: rights.permissions, rules: [] });
    const who = { tenant, application, key, session, origin, ...(anonymous && { anonymous }) };
    return authenticated({ ...who, kind: 'private', policy, ...forVisitor });
  }
  const lends = await authorityLentBy(store, tenant, rights.application);
  return authenticated({
    tenant,
    application: lends === undefined ? noApplication : rights.application,
    key: undefined,
    session: undefined,
    kind: lends?.kind ?? 'private',
    policy: lends?.policy ?? nothing,
    origin,
    ...forVisitor,
  });
}
