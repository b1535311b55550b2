/** Clients of a tenant's vault, as a developer makes them, and a `fetch` between them and the vault. */
import { Strongroom, type StrongroomOptions } from '../../packages/client/src/client.ts';
import type { TestTenant } from './tenant.ts';
import { revealEverything } from './vault.ts';

type GivenOptions = Partial<StrongroomOptions>;

/** A client with this key, by default that of an application that may do everything with tokens. */
export function clientOf(tenant: TestTenant, options: GivenOptions = {}): Strongroom {
  return new Strongroom({ url: tenant.vault.url, apiKey: tenant.key, ...options });
}

/** A client of each kind of application. */
export interface ClientsOfTenant {
  /** A private key that may do everything with tokens, token intents, proxies and reactors. */
  readonly vault: Strongroom;
  /** A management key with all permissions. */
  readonly admin: Strongroom;
  /** A public key. */
  readonly site: Strongroom;
  readonly apiKey: string;
}

const intents = ['token-intent:create', 'token-intent:read', 'token-intent:delete'];
const { permissions } = revealEverything;

export async function clientsOf(
  tenant: TestTenant,
  options: GivenOptions = {},
): Promise<ClientsOfTenant> {
  const rule = {
    ...revealEverything,
    permissions: [...permissions, 'proxy:invoke', 'reactor:invoke'],
  };
  const apiKey = await tenant.application({ rules: [rule], permissions: intents });
  const publicKey = await tenant.application({ type: 'public', permissions: ['token:create'] });
  return {
    vault: clientOf(tenant, { apiKey, ...options }),
    admin: clientOf(tenant, { apiKey: tenant.managementKey, ...options }),
    site: clientOf(tenant, { apiKey: publicKey, ...options }),
    apiKey,
  };
}

/** What a request looks like on its way, and how it goes on. */
type Intercept = (request: Request, send: () => Promise<Response>) => Promise<Response>;

/** A `fetch` that hands each request to `intercept`, which may send it, change it or lose it. */
export function interceptedFetch(intercept: Intercept): typeof fetch {
  return (input, init) => {
    const request = new Request(input, init);
    return intercept(request.clone(), () => fetch(request));
  };
}
