/** The tokens that a call refers to: all are permitted and logged, or none is used. */
import { VaultError } from '../../base/errors.ts';
import { type EgressPolicy, policyHasToken } from '../../rules/egress-policies.ts';
import type { Refused } from '../../rules/operation.ts';
import type { TokenReading } from '../../tokens/read.ts';
import { sending, type TargetAccess, using } from '../../tokens/tokenization/reference-targets.ts';
import { listIds } from '../../tokens/tokenization/resolve-references.ts';
import {
  type ReferenceUse,
  type UsedReferences,
  useReferences,
} from '../../tokens/tokenization/use-references.ts';
import { type CalledProxy, ephemeralId, invalidCall } from './called-proxy.ts';
import { useEntry } from './entries.ts';
import type { ProxyCall } from './proxy-call.ts';

/**
 * If not all can be used, returns the refusal: first for unknown ids, then for a missing permission.
 * @throws VaultError `invalid_proxy_request` for more tokens than the tenant's quota.
 */
export async function useTokens(
  tools: TokenReading,
  call: ProxyCall,
  wanted: ReferenceUse,
): Promise<UsedReferences | Refused> {
  const { caller, proxy } = call;
  const { access, permission } = accessOf(proxy);
  const used = await useReferences(tools, caller, {
    ...wanted,
    access,
    permission,
    max: caller.tenant.quotas.proxy_token_limit,
    quota: 'proxy_token_limit',
    invalid: (message) => invalidCall('the request', message),
    unknown: proxy.egress ? unnamedTokens : unknownTokens,
    entryFor: (target) => useEntry(call, wanted.now, target),
    attempt: { entity: 'proxy', id: proxy.id, operation: 'invoke' },
  });
  const isForbidden = 'refusal' in used && used.refusal.code === 'forbidden';
  return proxy.egress && isForbidden ? { ...used, refusal: forbiddenPlaceholder() } : used;
}

/** A program that holds a placeholder does not know the id of its token, which may say something of the value. */
function unnamedTokens(): VaultError {
  return new VaultError('invalid_proxy_request', {
    public: 'A placeholder in the request stands for a token that does not exist any more.',
    errors: {},
  });
}

function forbiddenPlaceholder(): VaultError {
  return new VaultError('forbidden', {
    public: 'The rules or the egress policy do not let the value of a placeholder be sent there.',
  });
}

/** A host that the caller chooses may be the caller's own. */
export function accessOf({ id, egress }: Pick<CalledProxy, 'id' | 'egress'>): {
  readonly access: TargetAccess;
  /** The required permission in refusals. */
  readonly permission: string;
} {
  if (egress) return { access: underPolicy(egress), permission: 'proxy:invoke or token:use' };
  return id === ephemeralId
    ? { access: sending, permission: 'proxy:invoke' }
    : { access: using, permission: 'proxy:invoke or token:use' };
}

/** What the rules permit, as far as the policy has the token too. */
function underPolicy(policy: EgressPolicy): TargetAccess {
  return {
    ...using,
    grant: (held, subject) =>
      policyHasToken(policy, { id: subject.id ?? '', container: subject.container })
        ? using.grant(held, subject)
        : undefined,
  };
}

function unknownTokens(ids: readonly string[]): VaultError {
  return new VaultError('invalid_proxy_request', {
    public: `Failed to detokenize some tokens: ${listIds(ids)}. They were not found.`,
    internal: `${ids.length} ids to detokenize were not found`,
    errors: {},
  });
}
