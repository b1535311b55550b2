/** Authentication: from the key a request carries to the caller it stands for. */
import { apiKeyPlausible, hashApiKey } from '../crypto/api-key.ts';
import { type Clock, second } from '../lib/clock.ts';
import { VaultError } from '../lib/errors.ts';
import { ExpiringMap } from '../lib/expiring-map.ts';
import type { ApplicationId, TenantId } from '../lib/ids.ts';
import type { Store } from '../store/store.ts';
import { type Policy, policyOf } from './access.ts';
import { accessOf } from './applications.ts';
import type { Caller, Origin } from './caller.ts';
import type { ApplicationKind } from './permissions.ts';
import type { Tenants } from './tenants.ts';

export type Authenticate = (key: string | undefined, origin: Origin) => Promise<Caller>;

interface Principal {
  readonly tenantId: TenantId;
  readonly application: ApplicationId;
  readonly kind: ApplicationKind;
  readonly policy: Policy;
}

/** A revoked key, or one whose rules changed, works on no server for longer than this. */
const staleMsMax = second;
const principalsCached = 10_000;

export interface AuthenticateOptions {
  readonly store: Store;
  readonly tenants: Tenants;
  readonly clock: Clock;
}

/**
 * Keys are found by their SHA-256, so how long a look-up takes says nothing about how much of a
 * guess was right. Every refusal looks the same, whatever was wrong.
 */
export function createAuthenticate({ store, tenants, clock }: AuthenticateOptions): Authenticate {
  const recent = new ExpiringMap<string, Principal>({
    clock,
    ageMsMax: staleMsMax,
    entriesMax: principalsCached,
  });

  async function principalOf(key: string): Promise<Principal | undefined> {
    const hash = hashApiKey(key).toString('base64url');
    const known = recent.get(hash);
    if (known) return known;
    if (!apiKeyPlausible(key)) return undefined;
    const found = await store.get('api_keys', { key_hash: hash });
    if (found === undefined) return undefined;
    const { tenant_id, application_id } = found;
    const application = await store.get('applications', { tenant_id, application_id });
    if (application === undefined) return undefined;
    const principal: Principal = {
      tenantId: tenant_id,
      application: application_id,
      kind: application.type,
      policy: policyOf(accessOf(application)),
    };
    recent.set(hash, principal);
    return principal;
  }

  return async (key, origin) => {
    const principal = key === undefined ? undefined : await principalOf(key);
    const tenant = principal && (await tenants.find(principal.tenantId));
    if (principal === undefined || tenant === undefined) {
      throw new VaultError('unauthenticated', { public: 'A valid API key is required.' });
    }
    const { application, kind, policy } = principal;
    return { tenant, application, kind, policy, origin } as Caller;
  };
}
