/** The tokens that a call refers to: each permitted and logged, or none. */
import { VaultError } from '../../lib/errors.ts';
import type { Refused } from '../../rules/operation.ts';
import { sending, using } from '../tokenization/reference-targets.ts';
import { listIds } from '../tokenization/resolve-references.ts';
import {
  type ReferenceUse,
  type UsedReferences,
  useReferences,
} from '../tokenization/use-references.ts';
import type { TokenReading } from '../tokens/read.ts';
import { ephemeralId, invalidCall } from './called-proxy.ts';
import { useEntry } from './entries.ts';
import type { ProxyCall } from './proxy-call.ts';

/**
 * Where not all can be used, the refusal: for ids that are unknown first, then for a permission.
 * @throws VaultError `invalid_proxy_request` for more tokens than the tenant's quota.
 */
export function useTokens(
  tools: TokenReading,
  call: ProxyCall,
  wanted: ReferenceUse,
): Promise<UsedReferences | Refused> {
  const { caller, proxy } = call;
  const isDescribed = proxy.id === ephemeralId;
  return useReferences(tools, caller, {
    ...wanted,
    access: isDescribed ? sending : using,
    permission: isDescribed ? 'proxy:invoke' : 'proxy:invoke or token:use',
    max: caller.tenant.quotas.proxy_token_limit,
    quota: 'proxy_token_limit',
    invalid: (message) => invalidCall('the request', message),
    unknown: unknownTokens,
    entryFor: (target) => useEntry(call, wanted.now, target),
  });
}

function unknownTokens(ids: readonly string[]): VaultError {
  return new VaultError('invalid_proxy_request', {
    public: `Failed to detokenize some tokens: ${listIds(ids)}. They were not found.`,
    internal: `${ids.length} ids to detokenize were not found`,
    errors: {},
  });
}
