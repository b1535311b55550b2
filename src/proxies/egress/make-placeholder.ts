/** Making a placeholder: what a program of the calling application holds in the place of a value. */
import type { Clock, Instant } from '../../base/clock.ts';
import { expiryForms, formatTimestamp, parseExpiry } from '../../base/dates.ts';
import { invalid } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import {
  fitsPlaceholder,
  newPlaceholder,
  placeholderNumber,
  placeholderTextBytesMax,
} from '../../keys/placeholder.ts';
import type { Caller } from '../../rules/caller.ts';
import { type EgressPolicy, policyHasToken } from '../../rules/egress-policies.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { decideUse } from '../../rules/policy.ts';
import { refuse } from '../../rules/refusal.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import {
  type TokenType,
  type TokenTypeName,
  tokenTypes,
} from '../../tokens/contents/token-types.ts';
import { liveToken } from '../../tokens/queries.ts';

export interface PlaceholderMaking {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
}

export interface PlaceholderRequest {
  readonly token_id: string;
  readonly property?: string | null;
  readonly form?: 'key' | 'number' | null;
  readonly expires_at?: string | null;
}

/**
 * From the decision `not_found` for a token that does not exist, `forbidden` for one that the caller may not send.
 * @throws VaultError `validation_failed` naming the attribute that is wrong, or that leads to no policy.
 */
export function makePlaceholder(
  { store, clock, random }: PlaceholderMaking,
  caller: Caller,
  request: PlaceholderRequest,
): Decide {
  const { token_id: id, form } = request;
  const property = request.property ?? undefined;
  return async () => {
    const now = clock.now();
    const { tenant, application, egress = [] } = caller;
    const expiresAt = readEnd(request, now);
    const token = await liveToken(store, { tenant: tenant.id, id, now });
    const { token_id: tokenId, container } = token;
    if (!decideUse(caller.policy, { id: tokenId, container })) {
      const permission = 'proxy:invoke';
      return refuse(caller, now, { entity: 'token', id: tokenId, permission, container });
    }
    const policies = egress.filter((one) => policyHasToken(one, { id: tokenId, container }));
    if (policies.length === 0) {
      throw invalid('token_id', 'is in no egress policy of the application of this key');
    }
    requireProperty(token, property);
    const target = { tokenId, property, expiresAt };
    if (form === 'number') requireNamed(policies, target);
    if (!fitsPlaceholder(target)) {
      throw invalid('token_id', `must have at most ${placeholderTextBytesMax - 100} bytes`);
    }
    const placeholder =
      form === 'number'
        ? placeholderNumber(tenant.keyring, application, target)
        : newPlaceholder(tenant.keyring, application, { ...target, random });
    const fact = { entity: 'token', id: tokenId, operation: 'placeholder', container } as const;
    return {
      change: { entries: [entryOf(caller, now, fact)] },
      reply: {
        status: 201,
        body: {
          placeholder,
          token_id: tokenId,
          ...(property !== undefined && { property }),
          hosts: [...new Set(policies.map(({ host }) => host))],
          ...(expiresAt !== undefined && { expires_at: formatTimestamp(expiresAt) }),
        },
      },
    };
  };
}

function readEnd({ expires_at }: PlaceholderRequest, now: Instant): Instant | undefined {
  if (expires_at === undefined || expires_at === null) return undefined;
  const end = parseExpiry(expires_at)?.at;
  if (end === undefined) throw invalid('expires_at', expiryForms);
  if (end <= now) throw invalid('expires_at', 'must be in the future');
  return end;
}

/** A value is text or a number. Of data that is an object, one property is sent. */
function requireProperty(
  { type }: Pick<Row<'tokens'>, 'type'>,
  property: string | undefined,
): void {
  const { properties }: TokenType = tokenTypes[type as TokenTypeName];
  if (properties && (property === undefined || !properties.includes(property))) {
    throw invalid('property', `must be one of ${properties.join(', ')}`);
  }
  if (!properties && type !== 'token' && property !== undefined) {
    throw invalid('property', 'must be left out for a token of this type, whose data has none');
  }
}

function requireNamed(
  policies: readonly EgressPolicy[],
  {
    tokenId,
    expiresAt,
  }: { readonly tokenId: Row<'tokens'>['token_id']; readonly expiresAt: unknown },
): void {
  if (!policies.some(({ tokens }) => tokens?.includes(tokenId))) {
    throw invalid('form', 'can be number only if a policy names the token by its id');
  }
  if (expiresAt !== undefined) {
    throw invalid('expires_at', 'must be left out for a number, which is always the same one');
  }
}
