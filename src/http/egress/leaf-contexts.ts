/** What the vault opens connections of programs with: certificates for their hosts, under their tenant's authority. */
import { createSecureContext, type SecureContext } from 'node:tls';
import { type Clock, hour } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import { noRenegotiation } from '../../base/renegotiation.ts';
import { egressAuthority } from '../../keys/egress-authority.ts';
import type { Tenant } from '../../rules/tenant.ts';

/** Half of the time for which a certificate is valid. */
const keptMs = 12 * hour;
const contextsKept = 500;

export type LeafContext = (tenant: Tenant, host: string) => Promise<SecureContext>;

export function createLeafContexts({ clock }: { readonly clock: Clock }): LeafContext {
  const contexts = new ExpiringMap<string, Promise<SecureContext>>({
    clock,
    ageMsMax: keptMs,
    entriesMax: contextsKept,
  });

  async function make(tenant: Tenant, host: string): Promise<SecureContext> {
    const now = clock.now();
    const { keyring, id } = tenant;
    const authority = await egressAuthority(keyring, { hosts: [host], tenant: id, now });
    return createSecureContext({
      ...(await authority.issue(host, now)),
      minVersion: 'TLSv1.2',
      secureOptions: noRenegotiation,
    });
  }

  return (tenant, host) => {
    const name = `${tenant.id} ${tenant.keyring.id} ${host}`;
    const known = contexts.get(name);
    if (known) return known;
    const made = make(tenant, host);
    contexts.set(name, made);
    return made;
  };
}
