/** Who acts where code asks for tokens: the application that lends its rights, or permissions of the code's own. */
import type { Clock } from '../../lib/clock.ts';
import { type ApplicationId, noApplication } from '../../lib/ids.ts';
import { authenticated, type Caller, isForVisitor } from '../../rules/caller.ts';
import type { Permission } from '../../rules/permissions.ts';
import { policyOf } from '../../rules/policy.ts';
import type { Store } from '../../store/store.ts';
import { authorityOf } from '../authority/authority.ts';

/** What an administrator gave the code; `undefined` where that is nothing. */
export type CodeRights =
  | { readonly application: ApplicationId }
  | { readonly permissions: readonly Permission[] };

const nothing = policyOf({ permissions: [], rules: [] });

/**
 * With the rights of this moment: an application that was deleted has none.
 * @param caller of the code, where the log names whoever called when the rights are nobody else's.
 * @throws VaultError `integrity` where the application was altered outside the vault.
 */
export async function actorOf(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
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
  const credential = { application: rights.application, key: undefined, session: undefined };
  const authority = await authorityOf(store, tenant, { credential, now: clock.now() });
  const lends = !('ended' in authority) && authority.kind !== 'management' ? authority : undefined;
  return authenticated({
    ...credential,
    tenant,
    application: 'ended' in authority ? noApplication : rights.application,
    kind: lends?.kind ?? 'private',
    policy: lends?.policy ?? nothing,
    origin,
    ...forVisitor,
  });
}
