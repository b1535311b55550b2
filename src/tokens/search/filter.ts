/** Filters of token lists and searches, and what they and a caller's access come to in the database. */
import type { Instant } from '../../base/clock.ts';
import type { Container } from '../../base/container.ts';
import type { TokenId } from '../../base/ids.ts';
import type { Caller } from '../../rules/caller.ts';
import type { Permission } from '../../rules/permissions.ts';
import { scopesOf } from '../../rules/policy.ts';
import type { MetadataPair, TokenConditions } from '../../store/queries/token-conditions.ts';
import { dataValue, metadataValue, termsOfValue } from '../contents/search-terms.ts';
import type { TokenTypeName } from '../contents/token-types.ts';

/** The conditions of a list; a token must meet all that are given. */
export interface TokenFilter {
  /** Any of these. */
  readonly ids?: readonly TokenId[];
  /** In it or below it. */
  readonly container?: Container;
  readonly type?: TokenTypeName;
  readonly fingerprint?: string;
  /** Values of search indexes. */
  readonly data?: readonly string[];
  readonly metadata?: readonly MetadataPair[];
  /** Whether `A` and `a` differ in metadata. */
  readonly metadataCase: 'folded' | 'exact';
}

/** The tokens of the filter on which the caller holds the permission. */
export function conditionsOf(
  caller: Pick<Caller, 'tenant' | 'policy'>,
  permission: Permission,
  { filter, now }: { readonly filter: TokenFilter; readonly now: Instant },
): TokenConditions {
  const { tenant, policy } = caller;
  const { container, data = [], metadata = [] } = filter;
  const values = [
    ...data.map(dataValue),
    ...metadata.map(({ key, value }) => metadataValue(key, value)),
  ];
  const terms = new Map(
    values.map((value) => {
      const { term, others } = termsOfValue(tenant, value);
      return [term, others];
    }),
  );
  const isRotated = [...terms.values()].some((others) => others.length > 0);
  return {
    tenant: tenant.id,
    now,
    scopes: scopesOf(policy, permission),
    ids: filter.ids,
    container: container === undefined ? undefined : { text: container, exact: false },
    type: filter.type,
    fingerprint: filter.fingerprint,
    terms: [...terms.keys()],
    ...(isRotated && { otherTerms: terms }),
    metadata: filter.metadataCase === 'exact' ? metadata : [],
  };
}

/** True when the caller holds the permission on the container the filter names, if it names one. */
export function containerAllowed(
  caller: Caller,
  permission: Permission,
  { container }: TokenFilter,
): boolean {
  if (container === undefined) return true;
  return scopesOf(caller.policy, permission).some(({ container: { text, exact } }) =>
    exact ? text === container : container.startsWith(text),
  );
}
