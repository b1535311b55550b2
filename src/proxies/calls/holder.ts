/** The proxy as the source of rights, for its code and for callers without a key. Always uses its current state. */

import {
  authorityLentBy,
  type EndedAuthority,
  type StandingAuthority,
} from '../../access/authority.ts';
import { VaultError } from '../../base/errors.ts';
import { noApplication, type ProxyId } from '../../base/ids.ts';
import { type CodeRights, type HolderOfCode, rightsIn } from '../../reactors/runs/holder.ts';
import type { Caller } from '../../rules/caller.ts';
import { openerOf } from '../../rules/openings.ts';
import { policyOf } from '../../rules/policy.ts';
import { provenRow } from '../../rules/proven-row.ts';
import { rowOf } from '../../rules/stored-resource.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import type { ProxyDefinition } from '../definition.ts';
import { openProxy } from '../row.ts';
import { type TransformSide, transformsOf } from '../transforms.ts';

export function proxyHolder(id: ProxyId, side: TransformSide): HolderOfCode {
  return {
    entity: 'proxy',
    id,
    lentNow: async (store, tenant) => {
      const row = await rowOf(store, 'proxies', { tenant, id });
      return rightsOfCode(definitionIn(tenant, row), side);
    },
    withoutKey: (store) => withoutKeyThrough(store, id),
  };
}

function rightsOfCode(definition: ProxyDefinition, side: TransformSide): CodeRights | undefined {
  const { application_id, request_transforms, response_transforms } = definition;
  const transforms = transformsOf({
    requestTransforms: request_transforms,
    responseTransforms: response_transforms,
  });
  const code = transforms[side].find(({ type }) => type === 'code');
  if (code?.type !== 'code') {
    throw new VaultError('not_found', { public: 'The proxy does not have this code any more.' });
  }
  return rightsIn({ application_id, runtime: code.runtime });
}

const nothing = policyOf({ permissions: [], rules: [] });

/**
 * The rights of a caller without a key: none if the proxy was deleted, now requires a key, or has another application
 * than at the beginning of the call.
 */
export function withoutKeyThrough(store: Store, proxy_id: ProxyId) {
  return async ({ tenant, application }: Caller): Promise<StandingAuthority | EndedAuthority> => {
    const key = { tenant_id: tenant.id, proxy_id };
    const row = await provenRow(store, tenant, { table: 'proxies', key });
    if (row === undefined) return { ended: 'proxy' };
    const { require_auth, application_id } = definitionIn(tenant, row);
    if (require_auth) return { ended: 'proxy' };
    if ((application_id ?? noApplication) !== application) return { ended: 'application' };
    const lent = application_id && (await authorityLentBy(store, tenant, application_id));
    return { kind: 'private', policy: lent ? lent.policy : nothing, expiresAt: undefined };
  };
}

function definitionIn(tenant: Tenant, row: Row<'proxies'>): ProxyDefinition {
  return openProxy(openerOf('load proxies', tenant), row).reveal().definition;
}
