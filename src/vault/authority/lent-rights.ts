/** What a reactor or a proxy lends to its code: as of the moment at which it is asked. */
import { VaultError } from '../../lib/errors.ts';
import type { ApplicationId, ProxyId, ReactorId } from '../../lib/ids.ts';
import { openerOf } from '../../rules/openings.ts';
import type { Permission } from '../../rules/permissions.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { CodeRuntime } from '../../transforms/code-runtime.ts';
import { proxyOf } from '../proxies/resource.ts';
import { openProxy } from '../proxies/row.ts';
import { type TransformSide, transformsOf } from '../proxies/transforms.ts';
import { openReactor, reactorOf } from '../reactors/resource.ts';

/** What holds the code. All that the code does derives from it, and ends with it. */
export type CodeLender =
  | { readonly entity: 'reactor'; readonly id: ReactorId }
  | { readonly entity: 'proxy'; readonly id: ProxyId; readonly side: TransformSide };

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

/**
 * What the code is lent now.
 * @throws VaultError `not_found` once its holder is deleted, or has no code any more; `integrity` where the holder was
 * altered outside the vault.
 */
export async function lentNow(
  store: Store,
  tenant: Tenant,
  holder: CodeLender,
): Promise<CodeRights | undefined> {
  if (holder.entity === 'reactor') {
    const row = await reactorOf(store, tenant.id, holder.id);
    return rightsIn(openReactor(openerOf('load reactors', tenant), row).reveal());
  }
  const row = await proxyOf(store, tenant.id, holder.id);
  const { definition } = openProxy(openerOf('load proxies', tenant), row).reveal();
  const { application_id, request_transforms, response_transforms } = definition;
  const transforms = transformsOf({
    requestTransforms: request_transforms,
    responseTransforms: response_transforms,
  });
  const code = transforms[holder.side].find(({ type }) => type === 'code');
  if (code?.type !== 'code') {
    throw new VaultError('not_found', { public: 'The proxy does not have this code any more.' });
  }
  return rightsIn({ application_id, runtime: code.runtime });
}
