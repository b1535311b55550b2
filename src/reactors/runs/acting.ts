/** Which rights code uses for tokens: those of an application, or permissions of its own. */

import { authorityLentBy } from '../../access/authority.ts';
import { noApplication } from '../../base/ids.ts';
import { authenticated, type Caller, isForVisitor, spenderOf } from '../../rules/caller.ts';
import { policyOf } from '../../rules/policy.ts';
import type { Store } from '../../store/store.ts';
import type { CodeRights } from './holder.ts';

const nothing = policyOf({ permissions: [], rules: [] });

/**
 * Uses the current rights: an application that was deleted has none.
 * @param caller of the code. The log names this caller if the rights belong to the code itself.
 * @throws VaultError `integrity` if the application was altered outside the vault.
 */
export async function actorOf(
  { store }: { readonly store: Store },
  caller: Caller,
  rights: CodeRights,
): Promise<Caller> {
  const { tenant, origin, spenders } = caller;
  const forVisitor = isForVisitor(caller) && ({ forVisitor: true } as const);
  if ('permissions' in rights) {
    const { application, key, session, anonymous } = caller;
    const policy = policyOf({ permissions: rights.permissions, rules: [] });
    const identity = {
      ...{ tenant, application, key, session, origin, spenders },
      ...(anonymous && { anonymous }),
    };
    return authenticated({ ...identity, kind: 'private', policy, ...forVisitor });
  }
  const lends = await authorityLentBy(store, tenant, rights.application);
  const application = lends === undefined ? noApplication : rights.application;
  return authenticated({
    tenant,
    application,
    spenders: [...spenders, spenderOf({ application, key: undefined })],
    key: undefined,
    session: undefined,
    kind: lends?.kind ?? 'private',
    policy: lends?.policy ?? nothing,
    origin,
    ...forVisitor,
  });
}
