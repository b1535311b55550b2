/** The tokens that a call refers to: all of them in one read, each permitted and logged, or none. */
import type { Evaluation } from '../../expressions/evaluation/evaluation.ts';
import type { Reference } from '../../expressions/reading.ts';
import type { Instant } from '../../lib/clock.ts';
import { VaultError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { LogEntry } from '../../lib/log-chain/entries.ts';
import { denialOf, failureOf } from '../../rules/log-entries.ts';
import type { Refused } from '../../rules/operation.ts';
import { referencedBytesMax } from '../tokenization/reference-sizes.ts';
import { sending, type Target, using } from '../tokenization/reference-targets.ts';
import { findTargets, listIds, targetCount } from '../tokenization/resolve-references.ts';
import type { TokenReading } from '../tokens/read.ts';
import { ephemeralId, invalidCall } from './called-proxy.ts';
import { useEntry } from './entries.ts';
import type { ProxyCall } from './proxy-call.ts';

export interface UsedTokens {
  readonly valueOf: (reference: Reference) => Json;
  /** One for each token and each token intent. */
  readonly entries: readonly LogEntry[];
  /** The same where nothing is sent after all. */
  readonly failures: readonly LogEntry[];
}

export interface Using {
  readonly references: readonly Reference[];
  readonly now: Instant;
  readonly evaluation: Evaluation;
}

/**
 * Where not all can be used, the refusal: for ids that are unknown first, then for a permission.
 * @throws VaultError `invalid_proxy_request` for more tokens than the tenant's quota.
 */
export async function useTokens(
  tools: TokenReading,
  call: ProxyCall,
  { references, now, evaluation }: Using,
): Promise<UsedTokens | Refused> {
  const { caller, proxy } = call;
  const isDescribed = proxy.id === ephemeralId;
  const max = caller.tenant.quotas.proxy_token_limit;
  if (targetCount(references) > max) {
    const quota = `must refer to at most ${max} tokens (quota proxy_token_limit)`;
    throw invalidCall('the request', quota);
  }
  const wanted = { references, now, evaluation, access: isDescribed ? sending : using };
  const targets = await findTargets(tools, caller, wanted);
  const failure = failureOf(caller, now, { entity: 'token', operation: 'use' });
  if (targets === undefined) {
    const size = `must refer to tokens with at most ${referencedBytesMax} stored bytes in total`;
    return { change: { entries: [failure] }, refusal: invalidCall('the request', size) };
  }
  const { found, unknown } = targets;
  const lacking = found.filter(({ lacks }) => lacks !== undefined);
  const denials = lacking.map(({ entity, id }) =>
    denialOf(caller, now, { entity, id, operation: 'use' }),
  );
  if (unknown.length > 0) {
    const others = unknown.slice(1).map(() => failure);
    const change = { entries: [failure, ...others, ...denials] } as const;
    return { change, refusal: unknownTokens(unknown) };
  }
  const [first, ...others] = denials;
  if (first) {
    const permission = isDescribed ? 'proxy:invoke' : 'proxy:invoke or token:use';
    return { change: { entries: [first, ...others] }, refusal: forbidden(lacking, permission) };
  }
  const values = new Map<string, Json>();
  return {
    valueOf: (reference) => {
      const name = `${reference.kind}:${reference.id}`;
      const value = values.get(name) ?? targets.valueFor(reference);
      values.set(name, value);
      return value;
    },
    entries: found.map((target) => useEntry(call, now, target)),
    failures: found.map(({ entity, id }) =>
      failureOf(caller, now, { entity, id, operation: 'use' }),
    ),
  };
}

function unknownTokens(ids: readonly string[]): VaultError {
  return new VaultError('invalid_proxy_request', {
    public: `Failed to detokenize some tokens: ${listIds(ids)}. They were not found.`,
    internal: `${ids.length} ids to detokenize were not found`,
    errors: {},
  });
}

/** The ids are those that the caller sent, and of tokens that exist. */
function forbidden(targets: readonly Target[], permission: string): VaultError {
  const ids = listIds(targets.map(({ id }) => id));
  return new VaultError('forbidden', {
    public: `The caller lacks the permission ${permission} for these tokens: ${ids}.`,
    internal: `the caller may not use ${targets.length} tokens`,
  });
}
